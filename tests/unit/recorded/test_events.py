"""What a real Debezium, Connect and Kafka make of the scripts, before any code of ours reads it.

The epoch is put into each record by a single message transform, which must leave all else alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pytest

from cdclake.debezium.toast_placeholder import is_lost_when_unsent, unavailable_forms
from cdclake.plan import Table
from tests.recorded.expected import Expected, expected_in_order, in_key_order
from tests.recorded.limits import LIMITS
from tests.recorded.recording import EPOCH, FOLDER, Record, Recording, names

load = lru_cache(Recording.load)
TABLES = [(name, table.source) for name in names() for table in load(name).plan.tables]
# Columns of the one and the identity of the other change under way: they have their own tests.
STEADY = [t for t in TABLES if t[1] not in ("public.shifting", "public.unprotected")]
every_table = pytest.mark.parametrize(("name", "source"), STEADY, ids=lambda part: part)


def sent(name: str, source: str) -> list[Record]:
    """The table's records that are events, by offset."""
    recording = load(name)
    records = recording.of_topic(recording.plan.table(source).topic)
    return [record for record in records if record.value is not None]


def paired(name: str, source: str) -> Iterator[tuple[Table, Record, Expected]]:
    """Each event with what PostgreSQL's own word of the rows makes one expect."""
    table = load(name).plan.table(source)
    columns = [column.source for column in table.key_columns]
    records = in_key_order(
        sent(name, source),
        lambda record: record.event["op"],
        lambda record: [str(json.loads(record.key or b"{}")[column]) for column in columns],
    )
    expected = expected_in_order(table, load(name).said_of(source))
    for record, event in zip(records, expected, strict=True):
        yield table, record, event


def test_a_record_is_the_same_after_it_was_written_and_read():
    record = Record("t", 0, 1, b'{"a":"\xe2\x80\xa8"}', b"\xff\x00", (("h", b"\xfe"), ("n", None)))
    assert Record.from_line(record.to_line()) == record


@pytest.mark.parametrize("name", names())
def test_the_epoch_stands_in_each_record_and_in_no_key(name: str) -> None:
    for record in load(name).records:
        assert b"cdc_epoch" not in (record.key or b"")
        if record.value is not None:  # a tombstone stays one
            assert record.event["cdc_epoch"] == str(EPOCH)


@every_table
def test_null_stays_null_and_nothing_else_becomes_null(name: str, source: str) -> None:
    for table, record, event in paired(name, source):
        after = record.event["after"]
        assert (after is None) == (event.op in "dt")
        known = LIMITS.get(table.table, {})
        for column in table.columns:
            if event.op in "dt" or column.source in known or column.source in event.unsent:
                continue
            is_null = after[column.source] is None  # there, and with no default in its place
            assert is_null == (event.row[column.source] is None), (event.key, column.source)


@every_table
def test_before_is_null_where_postgresql_sends_no_old_row(name: str, source: str) -> None:
    for table, record, event in paired(name, source):
        before = record.event["before"]
        if event.op in "rct":
            assert before is None
        elif event.op == "u" and table.replica_identity != "full":
            # But for a key that is stored out of line: PostgreSQL 15 and later log that.
            assert before is None or source == "public.long_key"
        else:
            assert {column.source for column in table.columns} == before.keys()


@every_table
def test_keys_and_tombstones_are_debeziums_own(name: str, source: str) -> None:
    recording = load(name)
    records = recording.of_topic(recording.plan.table(source).topic)
    for table, record, event in paired(name, source):
        if event.op == "t":
            assert record.key is None
            continue
        key = json.loads(record.key or b"null")
        assert set(key) == {column.source for column in table.key_columns}
        image = record.event["before" if event.op == "d" else "after"]
        assert key == {column: image[column] for column in key}
        if event.op == "d":
            tombstone = records[record.offset + 1]
            assert (tombstone.key, tombstone.value) == (record.key, None)
    deletes = sum(record.event["op"] == "d" for record in sent(name, source))
    assert sum(record.value is None for record in records) == deletes


def test_a_changed_key_names_the_other_one_in_its_headers():
    pairs = moved = 0
    for name, source in STEADY:
        said = load(name).said_of(source)
        moved += sum(change.op == "UPDATE" and change.before is not None for change in said)
        for deleted, created in pairwise(sent(name, source)):
            new = dict(deleted.headers).get("__debezium.newkey")
            if new is not None:
                assert (deleted.event["op"], created.event["op"]) == ("d", "c")
                assert new == created.key
                assert dict(created.headers)["__debezium.oldkey"] == deleted.key
                assert deleted.event["source"]["lsn"] == created.event["source"]["lsn"]
                pairs += 1
    assert pairs == moved == 22


@pytest.mark.parametrize(
    "source", ["public.toasted", "public.domains", "public.long_key", "public.masked"]
)
def test_an_unsent_value_has_the_form_of_its_type(source: str) -> None:
    seen = set()
    for table, record, event in paired("toast", source):
        for column in table.columns:
            if column.source in event.unsent:
                value = as_in_the_log(record.event["after"][column.source])
                forms = unavailable_forms(column.column_type, load("toast").plan.placeholder)
                assert value in forms, column.source
                seen.add(column.source)
    assert seen >= {c.source for c in table.value_columns if c.type != "integer"}


def as_in_the_log(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def test_of_other_types_an_unsent_value_is_null_and_they_need_identity_full():
    table = load("toast").plan.table("public.unprotected")
    (*_, said) = load("toast").said_of(table.source)
    after = sent("toast", table.source)[-1].event["after"]
    lost = {name for name in said.unsent if after[name] is None}
    assert lost == {c.source for c in table.columns if is_lost_when_unsent(c.column_type)}
    assert len(lost) == 24 and all(said.row and said.row[name] for name in lost)


def test_a_truncate_of_one_partition_is_not_in_the_stream():
    statements = (FOLDER / "changes.sql").read_text()
    assert statements.count("truncate parts_north;") == statements.count('truncate "Parts";') == 1
    assert [r.event["op"] for r in sent("changes", "public.Parts")].count("t") == 1


def test_what_is_rolled_back_never_comes():
    values = [record.value or b"" for record in load("changes").records]
    assert any(b"before the savepoint" in value for value in values)
    assert not any(b"never" in value for value in values)


def test_every_kind_of_snapshot_says_which_it_is():
    kinds = [
        record.event["source"]["snapshot"] for record in sent("snapshots", "public.read_again")
    ]
    initial = ["first_in_data_collection", "true", "last_in_data_collection"]
    assert kinds == [
        *initial, None, *["incremental"] * 3, None, None, "first", "last", None, None, None,
    ]  # fmt: skip
    read = [r for r in sent("snapshots", "public.read_again") if r.event["op"] == "r"]
    lsns = [record.event["source"]["lsn"] is not None for record in read]
    assert lsns == [True] * 3 + [False] * 3 + [True] * 2


def test_heartbeats_and_signals_come_on_topics_of_their_own():
    recording = load("snapshots")
    for topic in recording.plan.topics:
        assert recording.of_topic(topic), topic


def test_a_column_comes_as_long_as_the_source_and_the_file_have_it():
    fields = {}
    for record in sent("schema", "public.shifting"):
        if record.event["op"] != "d":
            fields[json.loads(record.key or b"")["id"]] = " ".join(record.event["after"])
    declared, renamed, dropped, after = "id a b c d", "id a c d", "id a c", "id a text c e"
    assert fields == {
        **dict.fromkeys(range(1, 11), declared), 11: renamed, 12: dropped,
        13: after, 4: after, 120: after,
    }  # fmt: skip
