"""Trino as the engine of `verify`: Athena's view, its incomplete rows, and every type's text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from cdclake.jobs.verify.view_rows import compare_engines
from cdclake.local.trino.server import Trino
from tests.local.test_verify_types import assert_shown_as_in_duckdb
from tests.trino.case_groups import (
    FORMER,
    LISTED_ONLY,
    UNLISTED,
    groups,
    lacking,
    lake_of_cases,
)
from tests.trino.engine import over_values
from tests.unit.verify.lakes import make_plan
from tests.unit.verify.small_reader import SmallReader


@pytest.mark.slow
def test_verify_reports_rows_that_lack_values_as_incomplete(engine: Trino) -> None:
    names = max((list(group.values[0]) for group in groups()), key=lambda each: len(lacking(each)))
    names = [name for name in names if name not in FORMER.keys() | LISTED_ONLY]
    lake = lake_of_cases(names)
    plan = make_plan(lake.table)
    commits = [(lake.stamp, datetime.now(UTC) - timedelta(days=1), True)]
    reader: Any = SmallReader(plan, lake.log, lake.state, lake.stamp)
    asked = over_values(engine, plan, lake.log, lake.state, commits)
    [table] = compare_engines(reader, [lake.table], asked).tables
    unexplained = {name for name in names if name in UNLISTED}
    assert (table.missing, table.extra, table.different) == (0, 0, len(unexplained))
    assert table.incomplete >= len(lacking(names)) > 5
    assert {example.kind for example in table.first} <= {"incomplete", "different"}


@pytest.mark.slow
@pytest.mark.local
def test_values_of_every_type_are_compared_with_the_source(engine: Trino) -> None:
    assert_shown_as_in_duckdb(partial(over_values, engine))
