"""What Firehose could not deliver comes into log or quarantine, once or more often, but always."""

from __future__ import annotations

import base64
import gzip
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest

from cdclake import naming, zip_files
from cdclake.debezium import refusals
from cdclake.iceberg.schemas import QUARANTINE_COLUMNS
from cdclake.local.firehose.failures import Kind
from cdclake.redrive.routed_rows import RoutedRow
from cdclake.redrive.unwrap import unwrap_records
from cdclake.stacks.bundles import build_firehose_redrive, build_firehose_unwrap
from cdclake.web_logs.model import WebLogs
from cdclake.zip_files import BuiltZip
from tests.load_function import load_file
from tests.unit.deployed.erasing import CONTROL, SECRET
from tests.unit.deployed.redriving import (
    BUCKET,
    NOW,
    OWN,
    PREFIX,
    Stream,
    as_json,
    body,
    events,
    fail,
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
    answer = redrive(stream)
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
    assert redrive(stream)["objects"] == 0


def test_rows_that_no_log_took_come_again_with_a_new_moment(stream: Stream) -> None:
    fail("iceberg-failed", "plain", as_json(rows("plain")))
    fail("iceberg-failed", "rest", as_json([*rows("pair"), *rows("child")]))
    answer = redrive(stream)
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
    answer = redrive(stream)
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
    redrive(stream)
    [row] = stream.rows(naming.QUARANTINE)
    assert base64.b64decode(row["value"]) == line
    assert (row["reason"], row["offset"], row["table"]) == (refusals.UNREADABLE_LINE, 1, None)
    assert waiting() == []


def test_tombstones_and_heartbeats_are_no_changes(stream: Stream) -> None:
    fail("processing-failed", "plain", [b"", b'{"ts_ms": 1}'])
    answer = redrive(stream)
    assert (answer["dropped"], answer["objects"], stream.calls) == (2, 1, [])
    assert waiting() == []


def test_compressed_objects_are_read_too(stream: Stream) -> None:
    fail("processing-failed", "plain", events("plain"))
    [key] = waiting()
    boto3.client("s3").put_object(Bucket=BUCKET, Key=key, Body=gzip.compress(body(key)))
    assert redrive(stream)["redriven"] == {"plain_changes": len(rows("plain"))}


def test_another_streams_failures_are_left_alone(stream: Stream) -> None:
    direct = replace(plan().deliveries[0], name="weblogs", source="direct_put")
    with_logs = replace(plan(), web_logs=(WebLogs(stream=direct, by="day"),))
    fail("iceberg-failed", "weblogs", [b"a line"])
    fail("iceberg-failed", "rest", as_json(rows("pair")))
    assert redrive(stream, of=with_logs)["redriven"] == {"pair_changes": len(rows("pair"))}
    assert [key.rpartition("/")[2][:17] for key in waiting()] == ["shop-dev-weblogs-"]


def test_records_of_a_removed_put_stream_stay(stream: Stream) -> None:
    for record in (b'{"id": 1}', b'{"id": 1, "source": "web"}', b"GET / 200", b"", b"[]"):
        fail("processing-failed", "clicks", [record])
    fail("iceberg-failed", "clicks", as_json([{"id": 1, "arrived_at": NOW}]))
    before = waiting()
    answer = redrive(stream)
    assert (answer["objects"], answer["quarantined"], stream.calls) == (0, {}, [])
    assert keys() == before and len(before) == 6


def test_changes_of_a_removed_domain_are_redriven(stream: Stream) -> None:
    fail("processing-failed", "former", [b"no event", *events("plain")])
    fail("iceberg-failed", "former", as_json(rows("pair")))
    answer = redrive(stream)
    assert answer["redriven"] == {
        "plain_changes": len(rows("plain")), "pair_changes": len(rows("pair"))
    }  # fmt: skip
    assert answer["quarantined"] == {refusals.UNREADABLE_VALUE: 1}
    assert waiting() == []


@pytest.mark.parametrize("kind", ["processing-failed", "iceberg-failed"])
def test_either_folder_may_have_events_and_rows(stream: Stream, kind: Kind) -> None:
    fail(kind, "plain", [*events("plain"), *as_json(rows("plain"))])
    fail(kind, "rest", as_json(rows("pair")))
    fail(kind, "former", events("parent"))
    wrapped = [RoutedRow("child_changes", row).record() for row in rows("child")]
    fail(kind, naming.REDRIVE, wrapped)
    answer = redrive(stream)
    assert (answer["ok"], answer["quarantined"], waiting()) == (True, {}, [])
    for table, times in {"plain": 2, "pair": 1, "parent": 1, "child": 1}.items():
        found = [row[naming.LSN] for row in stream.rows(f"{table}_changes")]
        assert found == [row[naming.LSN] for row in rows(table)] * times


def test_what_failed_to_be_redriven_comes_again(stream: Stream) -> None:
    fail("processing-failed", "plain", [*events("plain"), b"no event"])
    redrive(stream)
    wanted, records = stream.content(), [*stream.records]
    [quarantined] = stream.rows(naming.QUARANTINE)
    stream.records.clear()
    fail("processing-failed", naming.REDRIVE, [*records, b'{"table": 1}'])
    redrive(stream)
    [again, lost] = stream.rows(naming.QUARANTINE)
    assert again == quarantined
    assert (lost["reason"], base64.b64decode(lost["value"])) == (
        refusals.UNREADABLE_VALUE, b'{"table": 1}',
    )  # fmt: skip
    assert wanted.keys() < stream.content().keys()
    stream.records.clear()
    fail("iceberg-failed", naming.REDRIVE, as_json([*rows("plain"), quarantined]))
    redrive(stream)
    assert len(stream.rows("plain_changes")) == len(rows("plain"))
    assert stream.rows(naming.QUARANTINE) == [quarantined]


def reasons_of(stream: Stream, raw: list[bytes], name: str = "plain", **how: Any) -> list[str]:
    fail("iceberg-failed", name, raw)
    return list(redrive(stream, **how)["quarantined"])


def test_a_row_of_another_declaration(stream: Stream) -> None:
    row = rows("plain")[0]
    assert reasons_of(stream, as_json([without(row, "note")])) == [refusals.lacking_column("note")]
    assert reasons_of(stream, as_json([{**row, "v": "1"}])) == [refusals.wrong_type("v", "int")]
    assert reasons_of(stream, as_json([{**row, "v": 2**31}])) == [refusals.wrong_type("v", "int")]
    assert reasons_of(stream, as_json([{**row, "v": True}])) == [refusals.wrong_type("v", "int")]
    assert reasons_of(stream, [b"[1]"]) == [refusals.UNREADABLE_VALUE]
    assert reasons_of(stream, as_json([without(row, "note")]), "rest") == [refusals.NO_TABLE]
    assert reasons_of(stream, as_json([{**row, "undeclared": 1}])) == []
    assert "undeclared" not in stream.rows("plain_changes")[-1]


def test_a_row_that_may_be_of_two_tables(stream: Stream) -> None:
    twin = replace(plan().table("pair"), table="pair2", name="pair2")
    streams = [replace(s, tables=(*s.tables, "pair2")) for s in plan().deliveries[2:]]
    wider = replace(plan(), tables=(*plan().tables, twin), deliveries=tuple(streams))
    [reason] = reasons_of(stream, as_json(rows("pair")[:1]), "rest", of=wider)
    assert reason == refusals.several_tables(["pair_changes", "pair2_changes"])


@pytest.mark.parametrize("kind", ["processing-failed", "iceberg-failed"])
def test_a_row_whose_deletion_may_be_forgotten_does_not_come_back(
    stream: Stream, kind: Any
) -> None:
    raw = events("plain") if kind == "processing-failed" else as_json(rows("plain"))
    fail(kind, "plain", raw)
    newest = max(row[naming.COMMITTED_AT] for row in rows("plain"))
    answer = redrive(stream, now=newest + 13 * DAY + 1)
    harmless = [row for row in rows("plain") if row[naming.OP] in "dt"]
    assert answer["redriven"] == {"plain_changes": len(harmless)}
    assert answer["quarantined"] == {refusals.TOO_OLD: len(rows("plain")) - len(harmless)}


def test_soft_deletes_are_never_forgotten(stream: Stream) -> None:
    soft = tuple(replace(table, deletes="soft") for table in plan().tables)
    fail("processing-failed", "plain", events("plain"))
    late = redrive(stream, of=replace(plan(), tables=soft), now=NOW + 80 * DAY)
    assert late["quarantined"] == {}


def test_rows_with_collapsed_values_do_not_come_back(stream: Stream) -> None:
    """A collapse has given a large value to a newer event, below which this one would be."""
    soft = replace(plan(), tables=tuple(replace(t, deletes="soft") for t in plan().tables))
    fail("processing-failed", "plain", events("plain"))
    assert any(table.toastable for table in soft.tables if table.name == "plain")
    rows_of = [row for row in rows("plain") if row[naming.OP] not in "dt"]
    late = redrive(stream, of=soft, now=NOW + 100 * DAY, dry_run=True)
    assert late["quarantined"] == {refusals.TOO_OLD: len(rows_of)}
    kept = redrive(stream, of=replace(soft, history_days=200), now=NOW + 100 * DAY, dry_run=True)
    assert kept["quarantined"] == {}


def test_a_fault_of_ours_holds_up_nobody(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    fail("processing-failed", "plain", events("plain")[:2])
    monkeypatch.setattr(
        "cdclake.firehose.rows.DeliveredRows.decode", lambda *_: [][0]  # IndexError
    )  # fmt: skip
    assert redrive(stream)["quarantined"] == {"FAULT: IndexError": 2}


def test_unwrapping_answers_each_record_once() -> None:
    given = [b'{"table": "plain_changes", "row": {"id": 1}}', b"no", b'{"table": 1, "row": {}}',
             b'{"table": "t", "row": []}', b'{"table": "t"}']  # fmt: skip
    records = [
        {"recordId": str(at), "data": base64.b64encode(raw).decode()}
        for at, raw in enumerate(given)
    ]
    first, *others = unwrap_records(records, plan().lake_database)
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


def deployed(built: BuiltZip, module: str, folder: Path) -> ModuleType:
    """Load a function from its unpacked zip."""
    with zipfile.ZipFile(built.path) as archive:
        archive.extractall(folder)
    return load_file(folder / f"{module}.py")


def test_the_deployed_handlers_run_the_same_code(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zip_files, "BUILT", tmp_path / "built")
    handler = deployed(build_firehose_redrive(plan()), "firehose_redrive", tmp_path).handler
    unwrap = deployed(build_firehose_unwrap(plan()), "firehose_unwrap", tmp_path).handler
    real = boto3.client
    monkeypatch.setattr(
        boto3, "client", lambda name, **how: stream if name == "firehose" else real(name, **how)
    )
    monkeypatch.setenv("BUCKET", BUCKET)
    monkeypatch.setenv("PREFIX", PREFIX)
    monkeypatch.setenv("CONTROL", CONTROL)
    monkeypatch.setenv("MASK_SALT", SECRET)
    fail("iceberg-failed", "rest", as_json(rows("pair")))
    dry = handler({"dry_run": True}, None)
    assert (dry["redriven"], stream.records) == ({"pair_changes": len(rows("pair"))}, [])
    answer = json.loads(json.dumps(handler({}, None)))
    assert answer.pop("before") >= dry["before"]
    assert answer == json.loads(json.dumps(without(dry, "before")))
    assert answer.keys() == {
        *("objects", "redriven", "dropped", "erased", "quarantined", "quarantined_of"),
        *("too_large", "awaited", "more", "after"),
    }
    put = [
        {"recordId": str(at), "data": base64.b64encode(record).decode()}
        for at, record in enumerate(stream.records)
    ]
    expected = unwrap_records(put, plan().lake_database)
    assert unwrap({"records": put}, None) == {"records": expected}
