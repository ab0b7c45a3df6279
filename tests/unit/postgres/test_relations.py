"""Relations of the source compared with the records that the lake keeps of them."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from cdclake import naming
from cdclake.jobs.operations import source_relations
from cdclake.postgres.catalog import SourceColumn, SourceTable
from cdclake.postgres.prepare import PublicationState
from cdclake.postgres.relation_check import (
    compare_relations,
    merged_records,
    parse_records,
    records_content,
)
from cdclake.postgres.relation_record import RelationRecord
from cdclake.postgres.relations import SourceState
from tests.spark.events import MemoryStore
from tests.unit.postgres.tables import BY_NUMBER, actual, column, declared, leaf, plan

PARTS = (leaf("orders_1", oid=11, file=21, joined="5"), leaf("orders_2", oid=12, file=22))
TABLE = actual(oid=1, file=10)
ROOT = actual(kind="p", oid=1, leaves=PARTS)
PUBLISHED = PublicationState(True, False, True, {("public", "orders"): None})


def source(*tables: SourceTable, **changes: Any) -> SourceState:
    return SourceState(
        **{
            "tables": {table.id: table for table in tables},
            "names": {table.oid: table.id for table in tables},
            "alike": {},
            "loaded": frozenset(),
            "publication": PUBLISHED,
            "role": "cdclake_shop",
            "sees_all_rows": False,
            "version": 170000,
            "streams": True,
            **changes,
        }
    )


def found(before: SourceTable, now: SourceState, *, settled: bool = True) -> dict[str, Any]:
    record = RelationRecord.of(declared(), before, settled=settled)
    return {change.kind: change for change in now.compare(declared(), record)}


def test_what_is_as_recorded_has_no_changes() -> None:
    for table in (TABLE, ROOT):
        assert found(table, source(table)) == {}
        assert found(table, source(table), settled=False) == {}


def test_records_are_read_as_they_were_written() -> None:
    records = {"public.orders": RelationRecord.of(declared(), ROOT, settled=False)}
    assert parse_records(records_content(records), [declared()]) == records


def test_a_record_of_another_lake_name_is_not_the_tables() -> None:
    records = {"public.orders": RelationRecord.of(declared(), ROOT, settled=True)}
    content = records_content(records)
    assert parse_records(content, [declared(name="sales")]) == {}
    assert parse_records(content, []) == records
    del content["tables"]["public.orders"]["lake_name"]  # as earlier versions wrote it
    [record] = parse_records(content, [declared(name="sales")]).values()
    assert record == replace(records["public.orders"], lake_name="")


@pytest.mark.parametrize(
    ("now", "kind", "message"),
    [
        (source(replace(TABLE, oid=2)), "recreated", "created again"),
        (source(TABLE, publication=PublicationState(True, False, True, {})), "unpublished", "not"),
        (source(TABLE, publication=PublicationState()), "unpublished", "publication"),
        (source(TABLE, publication=replace(PUBLISHED, right=False)), "unpublished", "`publish`"),
        (
            source(TABLE, publication=replace(PUBLISHED, filtered=frozenset({TABLE.id}))),
            "unpublished",
            "filters",
        ),
        (source(names={1: ("old", "o")}), "renamed", "renamed to old.o"),
        (source(), "missing", "no table public.orders"),
        (
            source(alike={("public", "orders"): (("public", "o"),)}),
            "missing",
            "public.o has the same columns",
        ),
        (
            source(replace(TABLE, indexes=(replace(BY_NUMBER, primary=True),))),
            "key",
            "its primary key moved from (id) to (number)",
        ),
    ],
)
def test_a_changed_relation_is_reported(now: SourceState, kind: str, message: str) -> None:
    [(reported, change)] = found(TABLE, now).items()
    assert reported == kind
    assert message in change.message
    assert "cdclake up" in change.remedy or "cdclake resync orders" in change.remedy


def test_a_table_whose_snapshot_would_differ_is_reported() -> None:
    secured = replace(TABLE, row_security=True)
    [(kind, change)] = found(TABLE, source(secured)).items()
    assert (kind, change.resync) == ("unreadable", False)  # its stream goes on
    assert "row-level security" in change.message
    assert change.remedy == 'run in the source: ALTER ROLE "cdclake_shop" BYPASSRLS;'
    assert found(TABLE, source(secured, sees_all_rows=True)) == {}
    inherited = found(TABLE, source(replace(TABLE, inherited=True)))
    assert "inherit from it" in inherited["unreadable"].message


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        ("timestamp without time zone", "timestamp(0) without time zone", True),
        ("timestamp(0) with time zone", "timestamp(3) with time zone", False),
        ("time(3) without time zone[]", "time(2) without time zone[]", True),
        ("interval", "interval(0)", True),
        ("interval", "interval day to second", True),
        ("interval day", "interval", False),
        ("character(5)", "character(10)", True),
        ("character varying(5)", "character varying(10)", False),
        ("character varying(5)", "text", False),
        ("character varying(10)", "character varying(5)", True),  # cuts trailing blanks
        ("character varying[]", "character varying(5)[]", True),
        ("text", "character varying(5)", True),
        ("json", "character varying(5)", True),
        ("uuid", "character varying(36)", False),
        ("public.short", "character varying(5)", True),  # a domain may have been longer
        ("public.short", "text", False),
        ("public.doc", "jsonb", True),  # or over `json`
        ("numeric", "numeric(50,2)", True),
        ("numeric(50,2)", "numeric", False),
        ("numeric(50,2)", "numeric(50,4)", False),
        ("json", "jsonb", True),
        ("jsonb", "json", False),
        ("integer", "bigint", False),
    ],
)
def test_values_that_postgres_converts_are_read_again(before: str, now: str, changed: bool) -> None:
    def of_type(kind: str) -> tuple[SourceColumn, ...]:
        return (TABLE.columns[0], column("number", shown=kind, number=2))

    old = replace(TABLE, columns=of_type(before))
    later = source(replace(TABLE, file=11, columns=of_type(now)))
    [(kind, change)] = found(old, later).items()
    assert (kind, change.resync) == (("converted", True) if changed else ("rewritten", False))
    assert "number" in change.message
    record = RelationRecord.of(declared(), old, settled=True)
    [other] = later.compare(declared(("id", "integer")), record)
    assert not other.resync  # not in the lake


def test_a_domain_converts_values_as_its_base_type() -> None:
    def of_domain(base: str, shown: str) -> SourceState:
        domain = replace(column("number", base, number=2), shown=shown)
        return source(replace(TABLE, file=11, columns=(TABLE.columns[0], domain)))

    text = (TABLE.columns[0], column("number", "text", number=2))
    assert "converted" in found(
        replace(TABLE, columns=text), of_domain("varchar(5)", "public.short")
    )
    assert "rewritten" in found(replace(TABLE, columns=text), of_domain("text", "public.long"))
    plain = (TABLE.columns[0], replace(column("number", "vector"), shown="public.vector"))
    assert "rewritten" in found(
        replace(TABLE, columns=plain), of_domain("vector(3)", "public.vector(3)")
    )


def test_a_lost_identity_is_reported_next_to_a_column_that_is_not_validated() -> None:
    unvalidated = replace(TABLE.columns[1], unvalidated=True)
    moved = replace(BY_NUMBER, primary=True)
    now = source(replace(TABLE, columns=(TABLE.columns[0], unvalidated), indexes=(moved,)))
    assert set(found(TABLE, now)) == {"key"}


def test_a_rename_is_undone_by_its_remedy() -> None:
    change = found(TABLE, source(names={1: ("old", "o")}))["renamed"]
    assert 'ALTER TABLE "old"."o" RENAME TO "orders";' in change.remedy
    assert 'ALTER TABLE "old"."orders" SET SCHEMA "public";' in change.remedy


def test_the_order_of_the_levels_of_a_partition_does_not_matter() -> None:
    """Earlier versions recorded it as the server's plan had it."""
    before, now = (
        replace(ROOT, leaves=(replace(PARTS[0], joined=joined), PARTS[1]))
        for joined in ("9 10", "10 9")
    )
    assert found(before, source(now)) == {}


def test_attached_and_detached_partitions_are_told_from_created_ones() -> None:
    new = leaf("orders_3", oid=13, file=13, joined="6")

    def with_new(part: Any, **changes: Any) -> dict[str, Any]:
        return found(ROOT, source(replace(ROOT, leaves=(*PARTS, part)), **changes))

    created = replace(new, created_attached=True)
    assert with_new(created) == {}
    assert "attached" in with_new(created, loaded=frozenset({13}))
    assert "public.orders_3" in with_new(new)["attached"].message
    again = replace(ROOT, leaves=(replace(PARTS[0], joined="7"), PARTS[1]))
    assert "public.orders_1" in found(ROOT, source(again))["attached"].message
    fewer = found(ROOT, source(replace(ROOT, leaves=PARTS[:1])))
    assert list(fewer) == ["detached"]
    assert "public.orders_2" in fewer["detached"].message
    assert all(change.resync for change in (*with_new(new).values(), *fewer.values()))


def test_any_rewrite_counts_until_the_first_snapshot_is_complete() -> None:
    now = source(replace(TABLE, file=11))
    assert found(TABLE, now) == {}
    assert found(TABLE, now, settled=False)["rewritten"].resync
    part = replace(ROOT, leaves=(replace(PARTS[0], file=99), PARTS[1]))
    assert "rewritten" in found(ROOT, source(part), settled=False)
    wider = replace(TABLE, file=11, columns=(TABLE.columns[0], column("number", "bigint")))
    change = found(TABLE, source(wider))["rewritten"]
    assert "new type of number" in change.message
    assert not change.resync


def test_a_column_that_was_added_again_is_another_one() -> None:
    id_column, number = TABLE.columns
    again = source(replace(TABLE, columns=(id_column, replace(number, number=3))))
    [(kind, change)] = found(TABLE, again).items()
    assert (kind, change.resync) == ("replaced", True)
    assert "column number was dropped and added again" in change.message
    record = RelationRecord.of(declared(), TABLE, settled=True)
    assert list(again.compare(declared(("id", "integer")), record)) == []  # not in the lake
    older = replace(record, numbers={})
    assert list(again.compare(declared(), older)) == []
    renamed = source(replace(TABLE, columns=(id_column, replace(number, name="n"))))
    assert list(renamed.compare(declared(("id", "integer"), ("n", "integer")), record)) == []


def moods(**labels: str) -> SourceTable:
    """Return the table with an enum of these labels; their names are their oids."""
    by_oid = {oid.removeprefix("oid"): label for oid, label in labels.items()}
    number = replace(TABLE.columns[1], labels=by_oid)
    return replace(TABLE, columns=(TABLE.columns[0], number))


def test_a_renamed_label_of_an_enum_is_reported_and_read_again() -> None:
    before = moods(oid7="sad", oid8="ok")
    assert found(before, source(moods(oid7="sad", oid8="ok", oid9="new"))) == {}
    swapped = source(moods(oid7="ok", oid8="sad"))
    [(kind, change)] = found(before, swapped).items()
    assert (kind, change.resync) == ("relabelled", True)
    assert "('sad' to 'ok', 'ok' to 'sad')" in change.message
    record = RelationRecord.of(declared(), before, settled=True)
    assert parse_records(records_content({"public.orders": record}), []) == {
        "public.orders": record
    }
    assert list(swapped.compare(declared(("id", "integer")), record)) == []  # not in the lake
    older = replace(record, labels={})
    assert list(swapped.compare(declared(), older)) == []


def test_a_changed_table_records_only_the_labels_that_are_new() -> None:
    kept = {"public.orders": RelationRecord.of(declared(), moods(oid7="sad"), settled=True)}
    changed = source(moods(oid7="blue", oid8="new"))
    [merged] = merged_records(changed, [declared()], kept).values()
    assert merged == replace(kept["public.orders"], labels={"7": "sad", "8": "new"})


def test_status_records_what_is_new_for_its_next_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def status(labels: SourceTable, **changes: Any) -> list[str]:
        now = source(replace(labels, kind="p"), **changes)
        monkeypatch.setattr(source_relations, "read_source", lambda *_: now)
        [found] = source_relations.compare_and_record(control, "", plan()).values()
        return [change.kind for change in found]

    control: Any = MemoryStore()
    monkeypatch.setattr(source_relations, "connect", lambda _: nullcontext())
    assert (status(moods(oid7="sad")), control.stored) == ([], {})  # `up` writes the first records
    first = source(moods(oid7="sad"))
    source_relations.keep_records(control, first, plan(), read=(), settled=True)
    more = leaf("orders_3", oid=13, file=13, joined="6", created_attached=True)
    assert status(replace(moods(oid7="sad", oid8="meh"), leaves=(more,))) == []
    assert status(moods(oid7="sad", oid8="fine")) == ["detached", "relabelled"]
    assert status(moods(oid7="sad", oid8="fine")) == ["detached", "relabelled"]


def test_status_during_up_keeps_the_records_of_its_new_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`up` records the tables of the new plan before `status` reads that plan."""
    orders, old = declared(), plan(declared(), declared(table="gone", name="gone"))
    new = plan(orders, declared(table="joins", name="joins"))
    now = source(*(replace(TABLE, table=table) for table in ("orders", "gone", "joins")))
    control: Any = MemoryStore()
    monkeypatch.setattr(source_relations, "connect", lambda _: nullcontext())
    read = {table.source for table in new.tables}
    source_relations.keep_records(control, now, new, read=read, settled=False)
    before = control.read(naming.RELATIONS).content
    monkeypatch.setattr(source_relations, "read_source", lambda *_: replace(now, streams=False))
    source_relations.compare_and_record(control, "", old)
    assert control.read(naming.RELATIONS).content == before
    renamed = plan(declared(name="sales"))
    source_relations.compare_and_record(control, "", renamed)
    assert control.read(naming.RELATIONS).content == before
    labels = source(moods(oid7="sad"), replace(TABLE, table="joins"))
    monkeypatch.setattr(source_relations, "read_source", lambda *_: replace(labels, streams=False))
    source_relations.compare_and_record(control, "", old)
    changed = control.read(naming.RELATIONS).content["tables"]
    assert changed["public.joins"] == before["tables"]["public.joins"]
    assert changed["public.orders"]["labels"] == {"7": "sad"}


def test_status_leaves_the_records_to_a_command_that_reads_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(*_: Any) -> SourceState:
        source_relations.keep_records(control, newer, plan(), read={"public.orders"}, settled=True)
        return source(moods(oid7="sad", oid8="meh"))

    control: Any = MemoryStore()
    monkeypatch.setattr(source_relations, "connect", lambda _: nullcontext())
    before, newer = source(moods(oid7="sad")), source(moods(oid7="sad", oid8="fine"))
    source_relations.keep_records(control, before, plan(), read=(), settled=True)
    monkeypatch.setattr(source_relations, "read_source", read)
    source_relations.compare_and_record(control, "", plan())
    [record] = source_relations.load_records(control, plan()).values()
    assert record.labels == {"7": "sad", "8": "fine"}


def test_what_firehose_delivers_is_not_read_again() -> None:
    record = RelationRecord.of(declared(), ROOT, settled=True)
    fewer = source(replace(ROOT, leaves=()))
    [change] = fewer.compare(declared(delivery="firehose"), record)
    assert not change.resync
    assert "another `name:`" in change.remedy


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("delivery", ["stream", "firehose"])
def test_a_repaired_publication_is_remembered_until_the_table_is_read(
    delivery: str, recorded: bool
) -> None:
    """`up` may die after it has repaired the publication, which then shows nothing."""
    control: Any = MemoryStore()
    before, narrowed = source(TABLE), source(TABLE, publication=replace(PUBLISHED, right=False))
    table = declared(delivery=delivery)
    streamed = replace(plan(), tables=(table,))

    def kinds(now: SourceState) -> list[tuple[str, bool]]:
        records = source_relations.load_records(control, streamed)
        [changes] = compare_relations(now, [table], records).values()
        return [(change.kind, change.resync) for change in changes]

    if recorded:  # each comparison, as of `status`, records what the publication omits
        source_relations.keep_records(control, before, streamed, read=(), settled=True)
        source_relations.keep_records(control, narrowed, streamed, read=(), settled=True)
    else:  # only `up` knows that the table is not new to the lake
        source_relations.keep_records(control, narrowed, streamed, read=(), settled=True)
        assert source_relations.load_records(control, streamed) == {}
        source_relations.mark_missed(control, narrowed, streamed, {table.source})
    source_relations.keep_records(control, before, streamed, read=(), settled=True)
    assert kinds(before) == kinds(narrowed) == [("unpublished", delivery == "stream")]
    source_relations.keep_resynced(control, before, streamed, table)
    assert kinds(before) == []


def test_a_changed_table_keeps_its_record_until_it_is_read_again() -> None:
    tables = [declared()]
    changed = source(replace(TABLE, oid=2))
    kept = {"public.orders": RelationRecord.of(declared(), TABLE, settled=True)}
    assert merged_records(changed, tables, kept) == kept
    assert merged_records(source(TABLE), tables, {}) == kept
    waiting = merged_records(source(TABLE, streams=False), tables, {})
    assert not waiting["public.orders"].settled
    assert merged_records(source(TABLE), tables, waiting) == kept
    assert merged_records(source(TABLE), [], kept) == {}
    assert compare_relations(source(TABLE), tables, kept) == {"public.orders": []}
