"""Rows that Firehose could not append, in the quarantine: their values, and their erasure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest

from cdclake import naming
from cdclake.debezium.changelog_rows import Place
from cdclake.debezium.stream_rows import StreamRows
from cdclake.erasures import ErasedKeys, KeyHash
from cdclake.jobs.forget.erased_values import erased_values
from cdclake.jobs.operations.erased_records import _RecordSearch
from cdclake.redrive.failed_events import FailedEvents
from cdclake.redrive.quarantined_records import is_of
from cdclake.trace.row_key import RowKey
from tests.unit.verify.lakes import create, make_plan, make_table

TABLE = make_table(delivery="firehose")
KEY = RowKey(TABLE, ("7",), {"id": 7})
ROW = {"id": 7, "v": 8, naming.POSITION: "05"}  # `big` was declared after it
WRAPPED = {"table": TABLE.changes, "row": ROW}
OTHER = {**ROW, "id": 9}


class Quarantine:
    """Reader of empty tables and of a quarantine with these records, which have no keys."""

    def __init__(self, *records: Any) -> None:
        self.records = [(TABLE.name, json.dumps(record).encode()) for record in records]

    @property
    def catalog(self) -> Quarantine:
        return self

    def names(self) -> set[str]:
        return {TABLE.name, TABLE.changes, naming.QUARANTINE}

    @contextmanager
    def open(self, tables: Any, plain: Any) -> Iterator[duckdb.DuckDBPyConnection]:
        with duckdb.connect() as session:
            create(session, TABLE)
            session.execute(
                f"CREATE TABLE {naming.QUARANTINE}"
                ' ("table" TEXT, topic TEXT, "partition" INT, key BLOB, value BLOB)'
            )
            for named, value in self.records:
                session.execute(
                    f"INSERT INTO {naming.QUARANTINE} VALUES (?, 'failed/a', NULL, NULL, ?)",
                    [named, value],
                )
            yield session


@pytest.mark.parametrize("record", [ROW, WRAPPED, {"after": {"id": 7, "v": 8}}])
def test_values_of_quarantined_rows_are_those_of_the_key(record: Any) -> None:
    reader: Any = Quarantine(record, OTHER, {**OTHER, "v": 10}, [7])
    assert erased_values(reader, TABLE, [KEY]) == {("id", "7"), ("v", "8")}


SOURCE = {"schema": TABLE.schema, "table": TABLE.table}
EVENT = {"op": "u", "source": SOURCE, "after": {"id": 7, "v": 8}}
ANOTHERS = {**EVENT, "source": {**SOURCE, "table": "another"}}


@pytest.mark.parametrize("named", [None, "former"])
@pytest.mark.parametrize(("record", "is_mine"), [(EVENT, True), (ANOTHERS, False), (ROW, False)])
def test_a_record_of_a_former_name_is_known_by_its_source(
    named: str | None, record: Any, is_mine: bool
) -> None:
    reader: Any = Quarantine(record)
    reader.records = [(named, value) for _, value in reader.records]
    found = {("id", "7"), *([("v", "8")] if is_mine else [])}
    assert erased_values(reader, TABLE, [KEY]) == found
    assert is_of(TABLE, named, "failed/a", reader.records[0][1]) is is_mine


def test_a_record_of_a_former_name_is_known_by_its_topic() -> None:
    assert is_of(TABLE, "former", TABLE.topic, b"broken")
    assert not is_of(TABLE, "former", "another", b"broken")


def test_a_record_of_a_former_key_is_erased_by_its_row() -> None:
    hashed = KeyHash.of(TABLE.name, "s")
    erased = ErasedKeys(hashed, {hashed.digest(KEY.parts): "06"})
    plan = make_plan(TABLE)
    search = _RecordSearch(TABLE, StreamRows(TABLE, plan), FailedEvents(plan))
    key, value = b'{"v": 8}', json.dumps({"after": {"id": 7, "v": 8}}).encode()
    assert search.is_erased(Place(0, 1), "former", key, value, erased)
    assert not search.is_erased(Place(0, 1), TABLE.name, key, value, erased)


@pytest.mark.parametrize(
    ("record", "is_erased"),
    [
        (ROW, True),
        (WRAPPED, True),
        (OTHER, False),
        ({**ROW, naming.POSITION: "07"}, False),  # newer than the erasure
        ({"id": 7, "v": 8}, True),
    ],
)
def test_a_quarantined_row_that_lacks_a_column_is_erased(record: Any, is_erased: bool) -> None:
    hashed = KeyHash.of(TABLE.name, "s")
    erased = ErasedKeys(hashed, {hashed.digest(KEY.parts): "06"})
    plan = make_plan(TABLE)
    search = _RecordSearch(TABLE, StreamRows(TABLE, plan), FailedEvents(plan))
    value = json.dumps(record).encode()
    found = search.is_erased(Place(None, 1), TABLE.name, None, value, erased)
    assert found is is_erased
