"""A source whose table no longer has the declared replica identity full.

The decoders accept its events, whose unsent values the lake carries over. So the check of the
source reports it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdclake.postgres.catalog import SourceTable
from cdclake.postgres.relation_record import RelationRecord
from tests.unit.postgres.tables import actual, declared, leaf
from tests.unit.postgres.test_relations import TABLE, source

FULL = declared(replica_identity="full", replica_identity_declared=True)
PARTS = (leaf(identity="f"), leaf("orders_2", identity="d"))


@pytest.mark.parametrize(
    ("now", "altered"),
    [(TABLE, "orders"), (actual(kind="p", oid=1, identity="f", leaves=PARTS), "orders_2")],
)
def test_a_lost_identity_full_is_reported_with_its_statement(
    now: SourceTable, altered: str
) -> None:
    [change] = source(now).compare(FULL, RelationRecord.of(FULL, now, settled=True))
    assert change.kind == "key"
    assert f'ALTER TABLE "public"."{altered}" REPLICA IDENTITY FULL;' in change.statements
    whole = replace(now, identity="f", leaves=tuple(replace(p, identity="f") for p in now.leaves))
    assert [*source(whole).compare(FULL, RelationRecord.of(FULL, whole, settled=True))] == []
