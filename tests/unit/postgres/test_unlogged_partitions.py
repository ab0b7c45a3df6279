"""Rows that were written to a partition while it was UNLOGGED: no event has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdclake.jobs.operations import source_relations
from cdclake.postgres.catalog import Relation
from cdclake.postgres.deployed_remedies import deployed_remedy
from cdclake.postgres.relation_check import compare_relations, merged_records
from cdclake.postgres.relation_record import RelationRecord
from tests.spark.events import MemoryStore
from tests.unit.postgres.tables import declared, leaf, plan
from tests.unit.postgres.test_relations import PARTS, ROOT, source

SET_LOGGED = 'run in the source: ALTER TABLE "public"."orders_1" SET LOGGED; then '
UNLOGGED = replace(PARTS[0], persistence="u", file=31)
LOGGED = replace(PARTS[0], file=41)  # SET LOGGED rewrites it
CREATED = leaf("orders_3", oid=13, file=13, joined="6", created_attached=True)


class Comparisons:
    """Comparisons of the partitioned table that follow each other, as those of `status`."""

    def __init__(self) -> None:
        first = RelationRecord.of(declared(), ROOT, settled=True)
        self.records: dict[str, RelationRecord] = {"public.orders": first}

    def compare(self, *leaves: Relation) -> dict[str, Any]:
        now = source(replace(ROOT, leaves=leaves))
        [changes] = compare_relations(now, [declared()], self.records).values()
        self.records = merged_records(now, [declared()], self.records)
        return {change.kind: change for change in changes}


def test_an_unlogged_partition_is_reported_until_it_is_read_again() -> None:
    comparisons = Comparisons()
    found = comparisons.compare(UNLOGGED, PARTS[1])
    assert list(found) == ["unlogged"]
    assert "partition public.orders_1 is or was UNLOGGED" in found["unlogged"].message
    assert found["unlogged"].remedy.startswith(f"{SET_LOGGED}run `cdclake up`")
    found = comparisons.compare(LOGGED, PARTS[1])
    assert list(found) == ["unlogged"]
    assert found["unlogged"].remedy.startswith("run `cdclake up`")
    assert found["unlogged"].resync
    read = RelationRecord.of(declared(), replace(ROOT, leaves=(LOGGED, PARTS[1])), settled=True)
    comparisons.records = {"public.orders": read}
    assert comparisons.compare(LOGGED, PARTS[1]) == {}


def test_a_partition_created_unlogged_is_reported_until_it_is_read_again() -> None:
    comparisons = Comparisons()
    found = comparisons.compare(*PARTS, replace(CREATED, persistence="u"))
    assert list(found) == ["unlogged"]
    found = comparisons.compare(*PARTS, replace(CREATED, file=23))
    assert list(found) == ["attached"]


def test_a_partition_that_was_rewritten_since_its_creation_is_reported() -> None:
    """It may have been UNLOGGED until then, and no catalog row shows that."""
    comparisons = Comparisons()
    assert comparisons.compare(*PARTS, CREATED) == {}
    rewritten = replace(CREATED, table="orders_4", oid=14, file=24)
    found = comparisons.compare(*PARTS, CREATED, rewritten)
    assert "public.orders_4 was attached, or rewritten after" in found["attached"].message


@pytest.mark.parametrize("delivery", ["stream", "firehose"])
def test_the_statement_precedes_the_remedy(delivery: Any) -> None:
    table = declared(delivery=delivery)
    record = RelationRecord.of(table, ROOT, settled=True)
    [change] = source(replace(ROOT, leaves=(UNLOGGED, PARTS[1]))).compare(table, record)
    assert change.resync == (delivery == "stream")
    for remedy in (change.remedy, deployed_remedy(table, change)):
        assert remedy.startswith(SET_LOGGED)
        assert len(remedy) > len(SET_LOGGED)


def test_up_records_an_unlogged_partition_before_it_refuses_it() -> None:
    """The refusal names SET LOGGED, and nothing else shows after it that rows are missing."""
    control: Any = MemoryStore()
    before = source(ROOT)
    now = source(replace(ROOT, leaves=(UNLOGGED, PARTS[1])))
    source_relations.keep_records(control, before, plan(), read=(), settled=True)
    source_relations.mark_missed(control, now, plan(), omitted=())
    records = source_relations.load_records(control, plan())
    assert not records["public.orders"].omitted
    later = source(replace(ROOT, leaves=(LOGGED, PARTS[1])))
    [changes] = compare_relations(later, plan().tables, records).values()
    assert [change.kind for change in changes] == ["unlogged"]


def test_a_new_record_marks_unlogged_partitions() -> None:
    """On AWS the first check takes the records."""
    first = source(replace(ROOT, leaves=(UNLOGGED, PARTS[1])))
    records = merged_records(first, [declared()], {})
    later = source(replace(ROOT, leaves=(LOGGED, PARTS[1])))
    [changes] = compare_relations(later, [declared()], records).values()
    assert [change.kind for change in changes] == ["unlogged"]
