"""The SQL that runbooks have people run in the source, on a source that is prepared."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.local.lake.source import prepare_source
from tests.local.source_database import OWNER, PASSWORD, proposed, run
from tests.unit.runbooks import blocks

pytestmark = pytest.mark.local


def test_the_source_takes_every_statement(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE orders (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    statements = [block for _, block in blocks("sql")]
    assert statements
    for statement in statements:
        run(database, statement)
