"""Quarantined events as `cdclake quarantine` shows them, also those that a redrive quarantined."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from cdclake import naming
from cdclake.jobs.reader.quarantine_counts import quarantined_events as counts
from cdclake.local.quarantined_events import Quarantine, quarantine_lines, quarantined_events
from cdclake.plan import Plan
from cdclake.redrive.objects import Kind, Line
from cdclake.redrive.routed_rows import Redrive
from tests.unit.deployed.redriving import NOW, PREFIX, as_json, events, plan, rows

OBJECT = "s3://lake/firehose/redriven/processing-failed/2026/11/22/x"
REFUSED = {"reason": "NO_ROW: `after` is missing", "value": b'{"op": "u"}', "key": b'{"id": 7}'}


def redriven(number: int, raw: bytes, kind: Kind = "processing-failed") -> dict[str, Any]:
    """The quarantine row that a redrive makes of a record of the stream `plain`."""
    text = json.dumps({"rawData": base64.b64encode(raw).decode()}).encode()
    line = Line(kind, naming.delivery_stream_name(PREFIX, "plain"), OBJECT, number, text)
    routed = Redrive(plan(), PREFIX, dict).route(line, NOW + number)
    assert routed is not None and routed.relation == naming.QUARANTINE
    return {**routed.row, "value": base64.b64decode(routed.row["value"])}


def from_kafka(table: str, offset: int) -> dict[str, Any]:
    return {
        "topic": plan().table(table).topic, "partition": 0, "offset": offset, "headers": None,
        "table": table, "quarantined_at": NOW - offset, **REFUSED,
    }  # fmt: skip


@contextmanager
def quarantine(kept: Sequence[dict[str, Any]], of: Plan | None = None) -> Iterator[Quarantine]:
    with duckdb.connect() as lake:
        lake.execute(
            f'CREATE TABLE {naming.QUARANTINE} (topic VARCHAR, "partition" INTEGER,'
            ' "offset" BIGINT, "key" BLOB, "value" BLOB, reason VARCHAR, "table" VARCHAR,'
            " quarantined_at TIMESTAMPTZ)"
        )
        names = ("topic", "partition", "offset", "key", "value", "reason", "table")
        for row in kept:
            lake.execute(
                f"INSERT INTO {naming.QUARANTINE} VALUES (?, ?, ?, ?, ?, ?, ?,"
                " make_timestamptz(?::BIGINT))",
                [*(row[name] for name in names), row["quarantined_at"]],
            )

        @contextmanager
        def opened(tables: Any, plain: Any) -> Iterator[duckdb.DuckDBPyConnection]:
            yield lake

        catalog = SimpleNamespace(names=lambda: {naming.QUARANTINE})
        reader: Any = SimpleNamespace(open=opened, catalog=catalog)
        yield Quarantine(of or plan(), reader, "shop.yaml", "run `cdclake up shop.yaml`")


def incomplete(number: int) -> bytes:
    """An event of `plain` that Firehose's function refuses: it lacks a declared column."""
    event = json.loads(events("plain")[0])
    event["after"] = {"id": number}
    return json.dumps(event).encode()


def test_records_that_a_redrive_quarantined_are_shown() -> None:
    kept = [redriven(n, incomplete(n)) for n in (1, 2, 3)]
    with quarantine([*kept, kept[0], from_kafka("plain", 5)]) as found:
        answer = quarantined_events(found, "plain", limit=2)
        assert [event["offset"] for event in answer["events"]] == [3, 2]
        everything = quarantined_events(found, None, limit=20)["events"]
        assert len(everything) == counts(found.reader)["plain"] == 4
    first, *_, last = everything
    assert (first["topic"], first["partition"], first["offset"]) == (OBJECT, None, 3)
    assert (last["partition"], last["offset"]) == (0, 5)
    [line, *_] = list(quarantine_lines(answer))
    assert line.startswith("plain id=3 ") and line.endswith(f"line 3 of {OBJECT}")


@pytest.mark.parametrize("kind", ["processing-failed", "iceberg-failed"])
def test_a_redriven_record_has_its_key_and_recorded_reason(kind: Kind) -> None:
    row = {name: value for name, value in rows("plain")[0].items() if name != "v"} | {"id": 7}
    raw = incomplete(7) if kind == "processing-failed" else as_json([row])[0]
    kept = redriven(1, raw, kind)
    with quarantine([kept]) as found:
        [event] = quarantined_events(found, "plain", limit=20)["events"]
    assert event["key"] == {"id": 7}
    assert [each["reason"] for each in event["reasons"]] == [kept["reason"]]
    assert kept["reason"].startswith("ABSENT_COLUMN")
    assert not event["accepted_now"]
