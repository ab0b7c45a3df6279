"""A redrive that is stopped, refused or at a limit loses and doubles nothing; the next goes on."""

from __future__ import annotations

import base64
import json
from typing import Any

import boto3
import pytest

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.redrive import batch_writer
from tests.unit.deployed.redriving import (
    BUCKET,
    Stream,
    as_json,
    body,
    events,
    fail,
    keys,
    redrive,
    rows,
    service,
    waiting,
    without,
)

pytestmark = pytest.mark.usefixtures("redrive_deployed")


def all_that_fails() -> None:
    fail("processing-failed", "plain", [*events("plain"), b"no event", b"none either"])
    fail("iceberg-failed", "rest", [*as_json(rows("pair")), b"no row"])
    fail("processing-failed", "parent", [b"no event", *events("parent")])


class Crash(Exception):
    """The function is gone."""


def crash_at(step: int, monkeypatch: pytest.MonkeyPatch, stream: Stream) -> Any:
    """Return an S3 client that, with the stream, crashes at the nth write, before or after it."""
    left = [step]

    def counted(real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Crash
            answer = real(*args, **kwargs)
            left[0] -= 1
            if left[0] == 0:
                raise Crash
            return answer

        return call

    s3 = boto3.client("s3")
    for name in ("copy_object", "delete_object", "put_object"):
        setattr(s3, name, counted(getattr(s3, name)))
    monkeypatch.setattr(stream, "put_record_batch", counted(stream.put_record_batch))
    return s3


def test_a_crash_between_any_two_steps_loses_and_doubles_nothing(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_that_fails()
    fail("processing-failed", "plain", [b"?" * 1_000_000, *events("plain")[:3]])
    kept = {key: body(key) for key in waiting()}
    redrive(stream)
    wanted, [rest] = stream.content(), waiting()
    assert sorted(set(wanted.values())) == [1, 2]  # three events failed twice
    places = {(row["topic"], row["offset"]) for row in stream.rows(naming.QUARANTINE)}
    assert len(places) == 4
    for step in range(1, 27):
        s3, again = boto3.client("s3"), Stream()
        for key in keys():
            s3.delete_object(Bucket=BUCKET, Key=key)
        for key, content in kept.items():
            s3.put_object(Bucket=BUCKET, Key=key, Body=content)
        monkeypatch.setattr(stream, "records", again.records)
        with monkeypatch.context() as crashing:
            crashing_s3 = crash_at(step, crashing, stream)
            with pytest.raises(Crash):
                redrive(stream, s3=crashing_s3)
        redrive(stream)
        assert stream.content().keys() == wanted.keys(), step
        assert waiting() == [rest]


def test_what_is_not_accepted_is_put_again_and_alone(stream: Stream) -> None:
    fail("processing-failed", "plain", events("plain"))
    turns = iter([False, True] * 1000)
    stream.refuses = lambda: next(turns)
    with pytest.raises(batch_writer.PutRejected, match="ServiceUnavailableException"):
        redrive(stream)  # a half each of three times
    assert len(waiting()) == 1
    assert stream.calls == [35, 17, 9]
    taken = set(stream.records)
    assert len(taken) == len(stream.records) == 18 + 8 + 5
    turns = iter([True] * 35 + [False] * 1000)
    redrive(stream)
    assert stream.calls[3:] == [35, 35]
    assert set(stream.records) > taken
    assert waiting() == []


def test_calls_hold_as_much_as_firehose_takes(stream: Stream) -> None:
    [event] = [e for e in events("plain") if b'"op":"c"' in e][:1]
    note = json.loads(event)["after"]["note"]
    large = event.replace(json.dumps(note).encode(), b'"' + b"x" * 900_000 + b'"', 1)
    assert len(large) > 900_000
    fail("processing-failed", "plain", [event] * 1200 + [large] * 4)
    redrive(stream)
    assert stream.calls == [500, 500, 203, 1]


def test_what_is_too_large_stays_and_is_counted(stream: Stream) -> None:
    event, garbage = events("plain")[0], b"?" * 1_000_000
    fail("processing-failed", "plain", [event, garbage, b"small"])
    [key] = waiting()
    answer = redrive(stream)
    rest = f"{key}-rest"
    assert (answer["ok"], answer["too_large"]) == (False, {f"s3://{BUCKET}/{rest}": 1})
    assert answer["quarantined"] == {refusals.UNREADABLE_VALUE: 1}
    assert waiting() == [rest]
    assert base64.b64decode(json.loads(body(rest))["rawData"]) == garbage
    put = len(stream.records)
    assert redrive(stream)["too_large"] == {f"s3://{BUCKET}/{rest}": 1}
    assert waiting() == [rest]
    assert len(stream.records) == put


def test_what_fails_meanwhile_waits_for_the_next_command(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail("processing-failed", "plain", events("plain"))
    real = stream.put_record_batch

    def put(**given: Any) -> Any:
        fail("iceberg-failed", "plain", [b"late"])
        return real(**given)

    monkeypatch.setattr(stream, "put_record_batch", put)
    redrive(stream)
    assert ["iceberg-failed" in key for key in waiting()] == [True]


def test_a_page_ends_in_time_and_the_next_goes_on(stream: Stream) -> None:
    all_that_fails()
    clock = iter(range(0, 10_000, 40))
    slow = service(stream, clock=lambda: next(clock))
    first = slow.page({})
    assert (first["objects"], first["more"]) == (1, True)
    assert len(waiting()) == 2
    event = {"before": first["before"], "after": first["after"]}
    assert slow.page(event)["objects"] == 1
    assert redrive(stream)["objects"] == 1
    assert waiting() == []


def test_a_dry_run_touches_nothing(stream: Stream) -> None:
    all_that_fails()
    before = keys()
    told = redrive(stream, dry_run=True)
    assert (keys(), stream.calls) == (before, [])
    assert without(redrive(stream), "dry_run") == without(told, "dry_run")
