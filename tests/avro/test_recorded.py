"""Each recorded script gives the same rows with Avro as with JSON, in both decoders."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from cdclake import naming
from cdclake.jobs.stream.avro_values import AvroValues
from cdclake.plan import Plan, Table
from tests.avro.measure import PAGE, RESULTS, rendered
from tests.avro.recorded import recorded_avro, stored_schemas
from tests.recorded import recording
from tests.recorded.decoders import as_stored, fast_rows, is_same, slow_rows
from tests.recorded.recording import Record

# Two runs of a script differ in these.
PLACES = {
    naming.POSITION, naming.TX_ID, naming.COMMITTED_AT, naming.LSN, naming.PREV_COMMIT_LSN,
    naming.OFFSET, naming.PARTITION,
}  # fmt: skip

# Of arrays in arrays Debezium sends these texts.
ADDRESS = re.compile(r"(?<=String;)@[0-9a-f]+")


def rows(records: list[Record], table: Table, plan: Plan) -> list[dict[str, Any] | None]:
    """The table's rows in the order of the source's log, by both decoders."""
    mine = sorted(
        (r for r in records if r.topic == table.topic), key=lambda r: (r.partition, r.offset)
    )
    sent = [(record.key, record.value) for record in mine]
    slow = [as_stored(row, table) for row in slow_rows(sent, table, plan)]
    fast, _ = fast_rows(sent, table, plan)
    for one, other in zip(slow, fast, strict=True):
        assert is_same(one, other)
    return slow


@pytest.mark.parametrize("name", recording.names())
def test_the_rows_are_those_of_json(name: str) -> None:
    found = recording.Recording.load(name)
    avro = recorded_avro(name)
    registry = AvroValues(stored_schemas(name))
    topics = {table.topic for table in found.plan.tables}
    assert all(r.value is None or r.value[0] == 3 for r in avro if r.topic in topics)
    values = registry.as_json([record.value for record in avro])
    again = [
        Record(r.topic, r.partition, r.offset, r.key, value, r.headers)
        for r, value in zip(avro, values, strict=True)
    ]
    for table in found.plan.tables:
        json_rows = rows(list(found.records), table, found.plan)
        avro_rows = rows(again, table, found.plan)
        assert len(json_rows) == len(avro_rows) > 0
        for one, other in zip(json_rows, avro_rows, strict=True):
            assert is_same(without_places(one), without_places(other)), (one, other)


def without_places(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """The row without what differs between two runs, such as the address of an object in Java."""
    if row is None:
        return None
    kept = {name: value for name, value in row.items() if name not in PLACES}
    return {n: ADDRESS.sub("@", v) if isinstance(v, str) else v for n, v in kept.items()}


def test_the_page_has_the_measured_figures() -> None:
    assert rendered(json.loads(RESULTS.read_text())) in PAGE.read_text()
