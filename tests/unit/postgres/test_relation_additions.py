"""Additions to a table that differs from its record for long: later changes of them are noticed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdclake.postgres.relation_check import merged_records
from cdclake.postgres.relation_record import Partition, RelationRecord
from tests.unit.postgres.tables import column, declared, leaf
from tests.unit.postgres.test_relations import PARTS, ROOT, source

BEFORE = {"public.orders": RelationRecord.of(declared(), ROOT, settled=True)}
# Reported as `rewritten`, which no command ends unless the table is read again.
WIDER = tuple(replace(part, file=part.file + 100, created_attached=True) for part in PARTS)
COLUMNS = (ROOT.columns[0], column("number", "bigint", nullable=False, number=2))
DIFFERENT = replace(ROOT, columns=COLUMNS, leaves=WIDER)
CREATED = leaf("orders_3", oid=13, file=13, joined="6", created_attached=True)


def test_a_partition_created_in_a_changed_table_may_be_detached() -> None:
    more = source(replace(DIFFERENT, leaves=(*WIDER, CREATED)))
    assert [change.kind for change in more.compare(declared(), BEFORE["public.orders"])] == [
        "rewritten"
    ]
    merged = merged_records(more, [declared()], BEFORE)
    new = {"public.orders_3": Partition(oid=13, file=13, joined="6")}
    [before] = BEFORE.values()
    assert merged == {"public.orders": replace(before, partitions={**before.partitions, **new})}
    changes = source(DIFFERENT).compare(declared(), merged["public.orders"])
    assert [(change.kind, change.resync) for change in changes] == [
        ("detached", True),
        ("rewritten", False),
    ]


def test_a_partition_with_earlier_rows_stays_attached_in_a_changed_table() -> None:
    for part, loaded in ((CREATED, {13}), (replace(CREATED, created_attached=False), set[int]())):
        more = source(replace(DIFFERENT, leaves=(*WIDER, part)), loaded=frozenset(loaded))
        merged = merged_records(more, [declared()], BEFORE)
        assert merged == BEFORE
        kinds = [change.kind for change in more.compare(declared(), merged["public.orders"])]
        assert kinds == ["attached", "rewritten"]


def test_a_partition_of_a_recorded_name_does_not_hide_a_dropped_one() -> None:
    again = source(replace(DIFFERENT, leaves=(WIDER[0], replace(CREATED, table="orders_2"))))
    merged = merged_records(again, [declared()], BEFORE)
    kinds = [change.kind for change in again.compare(declared(), merged["public.orders"])]
    assert kinds == ["detached", "rewritten"]


def test_a_column_added_to_a_changed_table_may_be_replaced() -> None:
    wanted = declared(("id", "integer"), ("number", "integer"), ("note", "text"))

    def with_note(kind: str, number: int) -> tuple[RelationRecord, Sequence[str]]:
        note = column("note", kind, number=number)
        now = source(replace(DIFFERENT, columns=(*COLUMNS, note)))
        kinds = [change.kind for change in now.compare(wanted, records["public.orders"])]
        return merged_records(now, [wanted], records)["public.orders"], kinds

    records = dict(BEFORE)
    records["public.orders"], kinds = with_note("text", 3)
    assert kinds == ["rewritten"]
    assert records["public.orders"].columns["note"] == "text"
    kept, kinds = with_note("text", 4)
    assert kinds == ["replaced", "rewritten"]
    assert kept == records["public.orders"]
    assert with_note("varchar(3)", 3)[1] == ["converted"]
