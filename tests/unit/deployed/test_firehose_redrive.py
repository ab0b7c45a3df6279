"""What Firehose could not deliver comes into log or quarantine, once or more often, but always."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.iceberg.schemas import QUARANTINE_COLUMNS
from cdclake.local.firehose.load_function import load
from cdclake.web_logs.model import WebLogs
from tests.unit.deployed.redriving import (
    BUCKET,
    NOW,
    OWN,
    PREFIX,
    Stream,
    as_json,
    body,
    deploy,
    events,
    fail,
    function,
    keys,
    plan,
    redrive,
    rows,
    waiting,
    without,
)

DAY = 86_400_000_000
pytestmark = pytest.mark.usefixtures("redrive_deployed")


def test_events_become_the_rows_that_the_function_makes(stream: Stream) -> None:
    fail("processing-failed", "plain", events("plain"))
    fail("processing-failed", "rest", events("whole") + events("pair"))
    answer = redrive()
    unknown = (naming.PARTITION, naming.OFFSET, naming.POSITION, naming.INGESTED_AT)
    for table in ("plain", "whole", "pair"):
        put, wanted = stream.rows(f"{table}_changes"), rows(table)
        assert [without(row, *unknown) for row in put] == [without(r, *unknown) for r in wanted]
        assert answer["redriven"][f"{table}_changes"] == len(wanted)
        assert {row[naming.OFFSET] for row in put} == {None}
        order = sorted(range(len(wanted)), key=lambda at: wanted[at][naming.POSITION])
        assert sorted(order, key=lambda at: put[at][naming.POSITION]) == order
    assert (answer["ok"], answer["objects"], answer["quarantined"]) == (True, 2, {})
    assert waiting() == []
    assert redrive()["objects"] == 0


def test_rows_that_no_log_took_come_again_with_a_new_moment(stream: Stream) -> None:
    fail("iceberg-failed", "plain", as_json(rows("plain")))
    fail("iceberg-failed", "rest", as_json([*rows("pair"), *rows("child")]))
    answer = redrive()
    for table in ("plain", "pair", "child"):
        assert stream.rows(f"{table}_changes") == [
            {**row, naming.INGESTED_AT: NOW} for row in json.loads(json.dumps(rows(table)))
        ]
    assert answer["quarantined"] == {}


def test_what_is_moved_lies_where_the_quarantine_says(stream: Stream) -> None:
    [garbage, event] = [b"no event", events("plain")[0]]
    foreign = event.replace(b'"table":"plain"', b'"table":"gone"')
    assert foreign != event
    fail("processing-failed", "plain", [event, garbage])
    fail("processing-failed", "rest", [foreign])
    [key, other] = waiting()
    answer = redrive()
    quarantined = {row["value"]: row for row in stream.rows(naming.QUARANTINE)}
    first, second = (quarantined[base64.b64encode(raw).decode()] for raw in (garbage, foreign))
    assert first == {
        "topic": f"s3://{BUCKET}/{key.replace('firehose/', 'firehose/redriven/')}",
        "partition": None, "offset": 2, "key": None, "headers": None, "quarantined_at": NOW,
        "value": base64.b64encode(garbage).decode(),
        "reason": refusals.UNREADABLE_VALUE, "table": "plain",
    }  # fmt: skip
    assert first.keys() == {name for name, _ in QUARANTINE_COLUMNS}
    assert (second["reason"], second["table"]) == (refusals.UNKNOWN_TABLE, None)
    assert answer["quarantined"] == {refusals.UNREADABLE_VALUE: 1, refusals.UNKNOWN_TABLE: 1}
    lines = body(first["topic"].removeprefix(f"s3://{BUCKET}/")).splitlines()
    assert base64.b64decode(json.loads(lines[1])["rawData"]) == garbage
    assert keys() == sorted(k.replace("firehose/", "firehose/redriven/") for k in (key, other))


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"rawData": 1}', b'{"rawData": "?"}', b"\xff"])
def test_a_line_that_is_none_is_kept_as_it_is(stream: Stream, line: bytes) -> None:
    boto3.client("s3").put_object(
        Bucket=BUCKET, Key="firehose/iceberg-failed/2026/11/22/x", Body=line + b"\n\n"
    )
    redrive()
    [row] = stream.rows(naming.QUARANTINE)
    assert base64.b64decode(row["value"]) == line
    assert (row["reason"], row["offset"], row["table"]) == (refusals.UNREADABLE_LINE, 1, None)
    assert waiting() == []


def test_tombstones_and_heartbeats_are_no_changes(stream: Stream) -> None:
    fail("processing-failed", "plain", [b"", b'{"ts_ms": 1}'])
    answer = redrive()
    assert (answer["dropped"], answer["objects"], stream.calls) == (2, 1, [])
    assert waiting() == []


def test_compressed_objects_are_read_too(stream: Stream) -> None:
    fail("processing-failed", "plain", events("plain"))
    [key] = waiting()
    boto3.client("s3").put_object(Bucket=BUCKET, Key=key, Body=gzip.compress(body(key)))
    assert redrive()["redriven"] == {"plain_changes": len(rows("plain"))}


def test_another_streams_failures_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = replace(plan().deliveries[0], name="weblogs", source="direct_put")
    web_logs = WebLogs(stream=stream, by="day")
    deploy(replace(plan(), web_logs=(web_logs,)), tmp_path, monkeypatch)
    fail("iceberg-failed", "weblogs", [b"a line"])
    fail("iceberg-failed", "rest", as_json(rows("pair")))
    assert redrive()["redriven"] == {"pair_changes": len(rows("pair"))}
    assert [key.rpartition("/")[2][:17] for key in waiting()] == ["shop-dev-weblogs-"]


def test_what_failed_to_be_redriven_comes_again(stream: Stream) -> None:
    fail("processing-failed", "plain", [*events("plain"), b"no event"])
    redrive()
    wanted, records = stream.content(), [*stream.records]
    [quarantined] = stream.rows(naming.QUARANTINE)
    stream.records.clear()
    fail("processing-failed", naming.REDRIVE, [*records, b'{"table": 1}'])
    redrive()
    [again, lost] = stream.rows(naming.QUARANTINE)
    assert again == quarantined
    assert (lost["reason"], base64.b64decode(lost["value"])) == (
        refusals.UNREADABLE_VALUE, b'{"table": 1}',
    )  # fmt: skip
    assert wanted.keys() < stream.content().keys()
    stream.records.clear()
    fail("iceberg-failed", naming.REDRIVE, as_json([*rows("plain"), quarantined]))
    redrive()
    assert len(stream.rows("plain_changes")) == len(rows("plain"))
    assert stream.rows(naming.QUARANTINE) == [quarantined]


def reasons_of(raw: list[bytes], name: str = "plain") -> list[str]:
    fail("iceberg-failed", name, raw)
    return list(redrive()["quarantined"])


def test_a_row_of_another_declaration(stream: Stream) -> None:
    row = rows("plain")[0]
    assert reasons_of(as_json([without(row, "note")])) == [refusals.lacking_column("note")]
    assert reasons_of(as_json([{**row, "v": "1"}])) == [refusals.wrong_type("v", "int")]
    assert reasons_of(as_json([{**row, "v": 2**31}])) == [refusals.wrong_type("v", "int")]
    assert reasons_of(as_json([{**row, "v": True}])) == [refusals.wrong_type("v", "int")]
    assert reasons_of([b"[1]"]) == [refusals.UNREADABLE_VALUE]
    assert reasons_of(as_json([without(row, "note")]), "rest") == [refusals.NO_TABLE]
    assert reasons_of(as_json([{**row, "undeclared": 1}])) == []
    assert "undeclared" not in stream.rows("plain_changes")[-1]


def test_a_row_that_may_be_of_two_tables(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = replace(plan().table("pair"), table="pair2", name="pair2")
    streams = [replace(s, tables=(*s.tables, "pair2")) for s in plan().deliveries[2:]]
    wider = replace(plan(), tables=(*plan().tables, twin), deliveries=tuple(streams))
    deploy(wider, tmp_path, monkeypatch)
    [reason] = reasons_of(as_json(rows("pair")[:1]), "rest")
    assert reason == refusals.several_tables(["pair_changes", "pair2_changes"])


@pytest.mark.parametrize("kind", ["processing-failed", "iceberg-failed"])
def test_a_row_whose_deletion_may_be_forgotten_does_not_come_back(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    raw = events("plain") if kind == "processing-failed" else as_json(rows("plain"))
    fail(kind, "plain", raw)
    newest = max(row[naming.COMMITTED_AT] for row in rows("plain"))
    monkeypatch.setattr(function, "now_us", lambda: newest + 13 * DAY + 1)
    answer = redrive()
    harmless = [row for row in rows("plain") if row[naming.OP] in "dt"]
    assert answer["redriven"] == {"plain_changes": len(harmless)}
    assert answer["quarantined"] == {refusals.TOO_OLD: len(rows("plain")) - len(harmless)}


def test_soft_deletes_are_never_forgotten(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soft = tuple(replace(table, deletes="soft") for table in plan().tables)
    deploy(replace(plan(), tables=soft), tmp_path, monkeypatch)
    monkeypatch.setattr(function, "now_us", lambda: NOW + 100 * DAY)
    fail("processing-failed", "plain", events("plain"))
    assert redrive()["quarantined"] == {}


def test_a_fault_of_ours_holds_up_nobody(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    fail("processing-failed", "plain", events("plain")[:2])
    monkeypatch.setattr(
        "cdclake.firehose.rows.DeliveredRows.decode", lambda *_: [][0]  # IndexError
    )  # fmt: skip
    assert redrive()["quarantined"] == {"FAULT: IndexError": 2}


def test_what_unwraps_answers_each_record_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unwrap = load("firehose_unwrap")
    monkeypatch.setattr(unwrap, "PLAN", function.PLAN)
    given = [b'{"table": "plain_changes", "row": {"id": 1}}', b"no", b'{"table": 1, "row": {}}',
             b'{"table": "t", "row": []}', b'{"table": "t"}']  # fmt: skip
    records = [
        {"recordId": str(at), "data": base64.b64encode(raw).decode()}
        for at, raw in enumerate(given)
    ]
    first, *others = unwrap.handler({"records": records}, None)["records"]
    assert base64.b64decode(first["data"]) == b'{"id":1}'
    assert first["metadata"]["otfMetadata"] == {
        "destinationDatabaseName": plan().lake_database,
        "destinationTableName": "plain_changes",
        "operation": "insert",
    }
    assert [(o["recordId"], o["result"]) for o in others] == [
        (str(at), "ProcessingFailed") for at in range(1, 5)
    ]
    assert OWN.startswith(PREFIX)
