"""The values that a traced row is searched by, and the lines of the answer."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.reader.catalog import CatalogTable, TableSnapshot
from cdclake.jobs.reader.relations import may_be_in_kafka
from cdclake.naming import STAMP_PROPERTY
from cdclake.plan import Plan, Table
from cdclake.trace.stored_report import places_outside, row_values, stored_lines
from cdclake.trace.trace_facts import FlowFacts, SourceFacts, TracedEvent, TraceFacts
from tests.recorded.firehose import stream_of
from tests.unit.trace.test_explanation import POLLED, TABLE


def facts(*rows: dict[str, object] | None, **more: object) -> TraceFacts:
    """The facts of a row that had these values, one event each."""
    return TraceFacts(
        table=TABLE, key=("7",), source=SourceFacts(), flow=FlowFacts(),
        events=tuple(TracedEvent(values=row) for row in rows), **more,  # type: ignore[arg-type]
    )  # fmt: skip


def test_every_value_that_the_row_had_is_searched_once() -> None:
    traced = facts(
        {"id": 7, "note": "first"}, None, {"id": 7, "note": "second", "cdc_op": "u"},
        state_row={"id": 7, "note": "second", "cdc_deleted": True},
        current_row={"id": 7, "note": None},
    )  # fmt: skip
    assert row_values(traced) == [("id", "7"), ("note", "first"), ("note", "second")]
    assert row_values(facts({"id": 7, "note": ""})) == [("id", "7")]
    dropped = {"id": 7, "cdc_dropped_mail": "a@b.org"}
    assert row_values(facts(state_row=dropped)) == [("cdc_dropped_mail", "a@b.org"), ("id", "7")]


def plan_of(table: Table, **more: Any) -> Plan:
    return Plan(name="p", source_database="d", lake_database="l", tables=(table,), **more)


def test_places_outside_have_an_end() -> None:
    streamed = places_outside(plan_of(TABLE), TABLE, in_kafka=True)
    polled = places_outside(plan_of(POLLED), POLLED, in_kafka=False)
    assert [(place["where"].partition(",")[0], place["until"]) for place in streamed[:3]] == [
        ("Kafka's topic shop.public.orders", "14 days after each event"),
        ("Kafka's topic p.cdclake.notification", "14 days after each event"),
        ("Kafka's topic of the connector's offsets", "Kafka compacts it, at no fixed time"),
    ]
    assert streamed[3:] == polled
    assert all(place["until"] for place in streamed)


@pytest.mark.parametrize(
    ("table", "stamp", "in_kafka"),
    [
        (TABLE, None, True),
        (POLLED, None, False),
        (POLLED, ChangesStamp(epoch=1, lsn_marks={-3: 9}), False),
        (POLLED, ChangesStamp(epoch=1, lsn_marks={-3: 9, 0: 5}, offsets={0: 7}), True),
    ],
    ids=["streamed", "not_polled_yet", "polled", "from_the_log"],
)
def test_kafka_may_have_a_table_whose_log_was_read(
    table: Table, stamp: ChangesStamp | None, in_kafka: bool
) -> None:
    snapshot = TableSnapshot(
        id=1, parent=None, committed_ms=0, sequence=1, manifests="", columns=(),
        summary={} if stamp is None else {STAMP_PROPERTY: stamp.to_json()},
    )  # fmt: skip
    log = CatalogTable(
        name=table.changes, location="", columns=(), snapshots={1: snapshot}, current=snapshot,
        history=(), tagged={},
    )  # fmt: skip
    catalog: Any = SimpleNamespace(load={table.changes: log}.__getitem__)
    assert may_be_in_kafka(table, catalog) is in_kafka


def test_firehose_may_hold_rows_as_long_as_its_streams_repeat() -> None:
    table = replace(TABLE, delivery="firehose")
    stream = replace(stream_of(table), buffer_seconds=60, function_seconds=1, function_retries=0)
    until = {
        seconds: places_outside(
            plan_of(table, deliveries=(replace(stream, retry_seconds=seconds),)),
            table,
            in_kafka=True,
        )[-1]
        for seconds in (0, 7200)
    }
    assert {place["where"] for place in until.values()} == {
        "Firehose's buffers and repeated appends"
    }
    assert [place["until"] for place in until.values()] == [
        "a run of apply_changes in 32 minutes or later",  # the stream of redriven rows
        "a run of apply_changes in 132 minutes or later",
    ]


def test_the_answer_names_places_and_columns() -> None:
    place = {"where": "s3://lake/a.parquet", "part": "values of column note", "columns": ["note"]}
    report = {"stored": [place], "remaining": [{"where": "Kafka", "until": "tomorrow"}]}
    assert list(stored_lines(report)) == [
        "",
        "stored in 1 places",
        "  s3://lake/a.parquet: values of column note (note)",
        "not searched",
        "  Kafka, until: tomorrow",
    ]
    assert "stored nowhere" in list(stored_lines(report | {"stored": []}))
