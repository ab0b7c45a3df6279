"""Firehose's functions follow a column that the source has widened when its changelog is."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from cdclake import naming
from cdclake.control_objects import WIDENED, WIDENED_CHANGELOGS
from cdclake.control_reader import ControlReader
from cdclake.firehose.erased_rows import REGISTER_SECONDS
from cdclake.firehose.record_transform import RecordTransform
from cdclake.jobs.control.store import ObjectStore
from cdclake.plan import Plan
from cdclake.redrive.routed_rows import RoutedRow
from cdclake.source_notes import widening_warnings
from cdclake.widened_columns import RecentlyWidened, WidenedColumns, note_changelogs
from tests.recorded.firehose import INGESTED_AT, handed_over
from tests.recorded.recording import Record
from tests.spark.events import MemoryStore
from tests.unit.deployed.erasing import CONTROL, keep_salt, with_plan
from tests.unit.deployed.redriving import (
    RECORDED,
    Stream,
    as_json,
    events,
    fail,
    plan,
    redrive,
    rows,
    waiting,
)

pytestmark = pytest.mark.usefixtures("redrive_deployed")

LARGE = 3_000_000_000
TYPES = {"plain": {"v": "bigint"}}


def note(name: str, types: Any = TYPES) -> None:
    """Note widened types, as the source check and the stream do."""
    ObjectStore(CONTROL).write(name, {"tables": types})


def large_event() -> Record:
    """An update of `plain` with a value that its declared type cannot hold."""
    topic = plan().table("plain").topic
    found = next(r for r in RECORDED.of_topic(topic) if r.value and r.event["op"] == "u")
    event = found.event
    event["after"]["v"] = LARGE
    return replace(found, value=json.dumps(event).encode())


def values(answers: list[dict[str, Any]]) -> list[Any]:
    """The value of `v` in each answer, or its result without a row."""
    return [
        json.loads(base64.b64decode(each["kafkaRecordValue"]))["v"]
        if each["result"] == "Ok"
        else each["result"]
        for each in answers
    ]


def test_function_follows_the_changelog_and_not_the_source_check() -> None:
    now = [1000.0]
    recent = RecentlyWidened(ControlReader(boto3.client("s3"), CONTROL), lambda: now[0])
    transform = RecordTransform(plan(), dict, recent.read)

    def answered() -> list[Any]:
        return values(transform.answer(handed_over([large_event()])["records"], INGESTED_AT))

    assert answered() == ["ProcessingFailed"]
    note(WIDENED)
    now[0] += REGISTER_SECONDS
    assert answered() == ["ProcessingFailed"]
    note(WIDENED_CHANGELOGS)
    now[0] += REGISTER_SECONDS - 0.001
    assert answered() == ["ProcessingFailed"]
    now[0] += 0.001
    assert answered() == [LARGE]


def test_function_follows_wider_decimals() -> None:
    event = large_event()
    value = event.event
    value["after"] |= {"v": 1, "amount": "123456789012.25"}
    records = handed_over([replace(event, value=json.dumps(value).encode())])["records"]
    wider = WidenedColumns(changelogs={"plain": {"amount": "numeric(14,2)"}})
    results = [
        RecordTransform(plan(), dict, read).answer(records, INGESTED_AT)[0]["result"]
        for read in (WidenedColumns, lambda: wider)
    ]
    assert results == ["ProcessingFailed", "Ok"]


def test_call_fails_while_the_notes_cannot_be_read() -> None:
    recent = RecentlyWidened(ControlReader(boto3.client("s3"), "s3://absent/control"))
    with pytest.raises(ClientError, match="NoSuchBucket"):
        RecordTransform(plan(), dict, recent.read).answer([], INGESTED_AT)


def test_deployed_function_reads_the_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note(WIDENED_CHANGELOGS)
    function = with_plan("firehose_changes", tmp_path, monkeypatch)
    assert values(function.handler(handed_over([large_event()]), None)["records"]) == [LARGE]


def test_redrive_brings_the_event_into_the_changelog(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (WIDENED, WIDENED_CHANGELOGS):
        note(name)
    keep_salt()
    real = boto3.client
    monkeypatch.setattr(
        boto3, "client", lambda name, **how: stream if name == "firehose" else real(name, **how)
    )
    function = with_plan("firehose_redrive", tmp_path, monkeypatch)
    fail("processing-failed", "plain", [large_event().value or b""])
    answer = function.handler({}, None)
    assert (answer["redriven"], answer["quarantined"]) == ({"plain_changes": 1}, {})
    assert [row["v"] for row in stream.rows("plain_changes")] == [LARGE]


@pytest.mark.parametrize("stored", [{}, {"plain": {"v": "integer"}}])
def test_redrive_moves_nothing_until_the_changelog_is_widened(stream: Stream, stored: Any) -> None:
    fail("processing-failed", "plain", [large_event().value or b""])
    before = waiting()
    awaiting = WidenedColumns(noted=TYPES, changelogs=stored)
    answer = redrive(stream, widened=lambda: awaiting)
    assert (answer["ok"], answer["awaited"]) == (False, {"plain_changes": 1})
    assert (waiting(), stream.records) == (before, [])


def test_redrive_leaves_the_records_of_awaited_changelogs_alone(stream: Stream) -> None:
    """In each of their forms, also next to those of another table of the stream's domain."""
    [wrapped, *_] = (RoutedRow("pair_changes", row).record() for row in rows("pair"))
    fail("processing-failed", "plain", events("plain"))
    fail("processing-failed", "rest", [*events("pair"), *events("child")])
    fail("processing-failed", naming.REDRIVE, [wrapped])
    fail("iceberg-failed", "rest", as_json(rows("pair")))
    left = {"pair_changes": len(events("pair")) + 1 + len(rows("pair"))}
    awaiting = WidenedColumns(noted={"pair": {"v": "bigint"}})
    before = waiting()
    dry = redrive(stream, dry_run=True, widened=lambda: awaiting)
    assert (dry["awaited"], waiting(), stream.records) == (left, before, [])
    answer = redrive(stream, widened=lambda: awaiting)
    assert (answer["ok"], answer["awaited"], answer["quarantined"]) == (False, left, {})
    assert answer["redriven"].keys() == {"plain_changes", "child_changes"}
    assert len(waiting()) == 3 and stream.rows("pair_changes") == []
    answer = redrive(stream)
    assert (answer["ok"], answer["awaited"], answer["redriven"]) == (True, {}, left)
    assert waiting() == []


@pytest.mark.parametrize(
    ("changed", "noted"),
    [
        (replace(plan(), widened_columns="stop"), TYPES),
        (plan(), {"plain": {"gone": "bigint"}, "another": {"v": "bigint"}}),
        (plan(), {"plain": {"v": "smallint"}}),
    ],
)
def test_what_no_changelog_will_follow_holds_up_no_redrive(changed: Plan, noted: Any) -> None:
    stored = {"plain": {"v": "integer"}}
    assert WidenedColumns(noted=noted, changelogs=stored).awaited(changed) == []


def test_a_file_that_has_followed_awaits_no_note() -> None:
    """An old note stays for ever where the stream is paused or removed."""
    followed = WidenedColumns(changelogs=TYPES).over(plan())
    widened = WidenedColumns(noted=TYPES)
    assert (widened.awaited(plan()), widened.awaited(followed)) == (["plain"], [])


def test_stream_notes_what_its_changelogs_have() -> None:
    control = MemoryStore()
    wider = WidenedColumns(changelogs=TYPES).over(plan())
    note_changelogs(control, plan(), {"plain"})
    assert control.stored == {}
    control.write(WIDENED, {"tables": {**TYPES, "pair": {"v": "bigint"}, "gone": {"v": "bigint"}}})
    note_changelogs(control, wider, {"plain"})  # `pair` could not be evolved
    stored = control.stored[WIDENED_CHANGELOGS]
    assert stored.content == {"tables": {**TYPES, "pair": {}}}
    note_changelogs(control, wider, ())  # a later start that can evolve none
    assert control.stored[WIDENED_CHANGELOGS] is stored
    note_changelogs(control, wider, {"plain", "pair"})
    assert control.stored[WIDENED_CHANGELOGS].content["tables"]["pair"] == {"v": "integer"}


def test_check_advises_the_redrive_for_delivered_tables_only() -> None:
    [warning] = widening_warnings(plan(), TYPES)
    assert "run `cdclake redrive` then" in warning
    streamed = tuple(replace(table, delivery="stream") for table in plan().tables)
    [warning] = widening_warnings(replace(plan(), tables=streamed), TYPES)
    assert "redrive" not in warning
