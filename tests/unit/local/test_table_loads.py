"""When a table's snapshot is in the lake, by the connector's recorded notifications."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.activity import Advance
from cdclake.local.lake import table_loads
from cdclake.local.lake.load_advance import advance_of
from cdclake.local.lake.table_loads import (
    LoadingTable,
    finished_reads,
    scan_of,
    unfinished_loads,
)
from cdclake.local.lake.topics import Message
from cdclake.plan import Table
from tests.source_tree import PROJECT


def recorded(script: str) -> list[Message]:
    lines = (PROJECT / "tests" / "recorded" / f"{script}.events.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines if "cdclake.notification" in line[:80]]
    return [
        Message(offset=r["offset"], written_ms=1000 + r["offset"], value=json.loads(r["value"]))
        for r in records
    ]


def table(source: str) -> Table:
    schema, name = source.split(".")
    return Table(schema=schema, table=name, name=name, topic=f"t.{source}", key=(), columns=())


def test_a_first_snapshot_ends_with_the_next_notification():
    said = recorded("snapshots")
    scan = scan_of(table("public.flowing"), said)
    assert (scan.total_rows, scan.status, scan.ended_ms) == (1, "SUCCEEDED", 1008)
    assert scan_of(table("public.flowing"), said[:8]).ended_ms is None
    assert scan_of(table("public.flowing"), said[:7]).status is None


def test_an_incremental_snapshot_tells_its_rows_before_its_end():
    said = [m for m in recorded("snapshots") if 9 <= m.offset <= 13]
    reading = scan_of(table("public.read_again"), said[:3])
    assert (reading.total_rows, reading.status) == (3, None)
    assert scan_of(table("public.read_again"), said).ended_ms == 1013


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Any:
    load = {"first_notification": 9, "offsets": {"0": 4}, "estimated_rows": 100}
    read = table("public.read_again")
    found = SimpleNamespace(
        kafka="", plan=SimpleNamespace(tables=[read], notification_topic="n"),
        state=SimpleNamespace(loads={"read_again": load}),
        said=[m for m in recorded("snapshots") if m.offset >= 9], retained=0,
    )  # fmt: skip
    monkeypatch.setattr(
        table_loads, "read_messages", lambda _, __, start: (found.retained, found.said)
    )
    monkeypatch.setattr(
        table_loads, "offsets_at", lambda kafka, times_ms: {topic: {0: 7} for topic in times_ms}
    )
    return found


@pytest.mark.parametrize(("arrived", "rows"), [(4, 0), (6, 2), (7, None)])
def test_a_table_loads_until_its_rows_have_arrived(lake, arrived, rows):
    found = unfinished_loads(lake, {"read_again": {0: arrived}}, ())
    assert (found["read_again"].rows if found else None) == rows
    if found:
        shown = {"phase": "reading", "rows": rows, "estimated_rows": 3}
        assert found["read_again"].to_json() == shown


def test_a_table_loads_until_the_rows_of_the_epoch_before_are_gone(lake):
    [found] = unfinished_loads(lake, {"read_again": {0: 7}}, {"read_again"}).values()
    assert found.to_json() == {"phase": "replacing", "rows": 3, "estimated_rows": 3}


def test_a_table_that_the_connector_did_not_read_says_so(lake):
    [end] = [m for m in lake.said if m.offset == 12]
    end.value["additional_data"]["status"] = "SQL_EXCEPTION"
    [found] = unfinished_loads(lake, {"read_again": {0: 7}}, ()).values()
    assert found.refused is not None and "SQL_EXCEPTION" in found.refused


def test_offsets_of_all_tables_are_asked_for_at_once(lake, monkeypatch):
    asked = []

    def offsets_at(kafka, times_ms):
        asked.append(times_ms)
        return {topic: {0: 7} for topic in times_ms}

    monkeypatch.setattr(table_loads, "offsets_at", offsets_at)
    flowing = table("public.flowing")
    lake.plan.tables.append(flowing)
    lake.state.loads["flowing"] = {**lake.state.loads["read_again"], "first_notification": 0}
    lake.said = recorded("snapshots")
    found = unfinished_loads(lake, {"read_again": {0: 6}, "flowing": {0: 7}}, ())
    assert asked == [{"t.public.read_again": 1014, "t.public.flowing": 1009}]
    assert list(found) == ["read_again"]


def test_a_load_whose_notifications_are_deleted_is_over(lake):
    lake.retained = 20
    assert unfinished_loads(lake, {}, ()) == {}


def test_a_read_that_began_now_is_reported_with_rows_and_seconds(lake):
    load = lake.state.loads["read_again"]
    load["begun_at"] = 1.0
    [(table, read)] = finished_reads(lake, {}).items()
    assert (table, read.rows) == ("read_again", 3)
    assert read.seconds == pytest.approx(0.013)
    assert finished_reads(lake, {"read_again": dict(load)}) == {}
    lake.said = lake.said[:1]
    assert finished_reads(lake, {}) == {}


def test_advance_is_that_of_all_loads_and_names_the_largest():
    loads = {
        "small": LoadingTable(rows=5, estimated_rows=10),
        "large": LoadingTable(rows=100, estimated_rows=1000, phase="replacing"),
    }
    assert advance_of({}) is None
    assert advance_of(loads) == Advance(
        done=105, total=1010, now="replaces the rows of large and 1 more"
    )
    unknown = {"t": LoadingTable(rows=5, estimated_rows=None)}
    assert advance_of(unknown) == Advance(done=5, now="reads t")
