"""A redrive brings no erased row back, neither into a changelog nor into the quarantine."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.firehose.erased_rows import RecentRegister
from cdclake.jobs.erasure.stored_objects import ObjectVersion, object_versions
from cdclake.redrive.routed_rows import RoutedRow
from tests.unit.deployed.erasing import (
    SECRET,
    above,
    in_memory,
    keep_salt,
    of_key,
    register,
    with_plan,
)
from tests.unit.deployed.redriving import (
    BUCKET,
    NOW,
    Stream,
    as_json,
    body,
    events,
    fail,
    keys,
    plan,
    redrive,
    rows,
    service,
    waiting,
    without,
)

DAY = 86_400_000_000
PLAIN, PAIR = plan().table("plain"), plan().table("pair")
CHANGED, ONE = (4,), (1, "one")
MADE = rows("plain")
GONE = of_key(PLAIN, MADE, CHANGED)
KEPT = [row for row in MADE if row not in GONE]
PARTLY = GONE[2][naming.POSITION]
pytestmark = pytest.mark.usefixtures("redrive_deployed")


def put(stream: Stream, table: str = "plain") -> list[Any]:
    return [row[naming.LSN] for row in stream.rows(f"{table}_changes")]


def lsns(given: list[Any]) -> list[Any]:
    return [row[naming.LSN] for row in given]


@pytest.mark.parametrize("kind", ["processing-failed", "iceberg-failed"])
def test_rows_of_erased_keys_are_dropped_and_newer_ones_put(stream: Stream, kind: Any) -> None:
    fail(kind, "plain", events("plain") if kind == "processing-failed" else as_json(MADE))
    # A position without an offset, as a failed event has lost its own.
    erased = in_memory(PLAIN, {CHANGED: PARTLY[:-16] + "0" * 16})
    dry = redrive(stream, dry_run=True, erased=lambda: erased)
    assert stream.records == []
    answer = redrive(stream, erased=lambda: erased)
    assert answer == {**dry, "dry_run": False}
    assert put(stream) == lsns([row for row in MADE if row not in GONE[:2]])
    assert (answer["dropped"], answer["quarantined"], waiting()) == (2, {}, [])


def test_of_a_stream_with_several_tables_each_row_is_judged_by_its_own(stream: Stream) -> None:
    pairs = rows("pair")
    gone = of_key(PAIR, pairs, ONE)
    fail("iceberg-failed", "rest", as_json([*pairs, *rows("child")]))
    erased = {**in_memory(PAIR, {ONE: above(gone)}), **in_memory(PLAIN, {(10,): above(MADE)})}
    assert redrive(stream, erased=lambda: erased)["dropped"] == len(gone)
    assert put(stream, "pair") == lsns([row for row in pairs if row not in gone])
    assert put(stream, "child") == lsns(rows("child"))


def test_what_failed_to_be_redriven_is_judged_again(stream: Stream) -> None:
    records = [RoutedRow(PLAIN.changes, row).record() for row in MADE]
    fail("processing-failed", naming.REDRIVE, records)
    fail("iceberg-failed", naming.REDRIVE, as_json(MADE))
    erased = in_memory(PLAIN, {CHANGED: above(GONE)})
    assert redrive(stream, erased=lambda: erased)["dropped"] == 2 * len(GONE)
    assert put(stream) == lsns(KEPT) * 2


def with_op(raw: bytes) -> bytes:
    return json.dumps({**json.loads(raw), "op": "m"}).encode()


def test_what_would_be_quarantined_is_dropped_if_it_is_older(stream: Stream) -> None:
    refused = [with_op(raw) for raw in events("plain")]
    fail("processing-failed", "plain", refused)
    fail("iceberg-failed", "plain", as_json([without(row, "note") for row in MADE]))
    everything = redrive(stream, dry_run=True)["quarantined"]
    unfit = refusals.lacking_column("note")
    erased = in_memory(PLAIN, {CHANGED: above(GONE)})
    answer = redrive(stream, erased=lambda: erased)
    assert answer["dropped"] == 2 * len(GONE)
    assert answer["quarantined"] == {
        refusals.UNKNOWN_OPERATION: everything[refusals.UNKNOWN_OPERATION] - len(GONE),
        unfit: len(KEPT),
    }
    assert len(stream.rows(naming.QUARANTINE)) == sum(answer["quarantined"].values())


def test_rows_too_old_to_be_known_are_dropped_as_well(stream: Stream) -> None:
    fail("processing-failed", "plain", events("plain"))
    late = NOW + 100 * DAY
    quarantined = redrive(stream, dry_run=True, now=late)["quarantined"][refusals.TOO_OLD]
    erased = in_memory(PLAIN, {CHANGED: above(GONE)})
    answer = redrive(stream, now=late, erased=lambda: erased)
    revived = [row for row in GONE if row[naming.OP] != "d"]
    assert answer["dropped"] == len(GONE)
    assert answer["quarantined"] == {refusals.TOO_OLD: quarantined - len(revived)}


def test_without_key_or_position_a_record_is_quarantined(stream: Stream) -> None:
    [first, *_] = (json.loads(raw) for raw in events("plain") if b'"id":4' in raw)
    unplaced = {name: value for name, value in first.items() if name != "cdc_epoch"}
    unnamed = {**first, "after": None}
    fail("processing-failed", "plain", [json.dumps(each).encode() for each in (unplaced, unnamed)])
    fail("processing-failed", "plain", [b"no event"])
    fail("iceberg-failed", "plain", as_json([without(GONE[0], naming.POSITION)]))
    erased = in_memory(PLAIN, {CHANGED: above(MADE)})
    answer = redrive(stream, erased=lambda: erased)
    assert (answer["dropped"], sum(answer["quarantined"].values())) == (0, 4)


def quarantine_row(value: bytes, table: str | None = "plain") -> dict[str, Any]:
    return {
        "topic": "s3://lake/a", "partition": None, "offset": 1, "key": None, "headers": None,
        "value": base64.b64encode(value).decode(), "reason": "X", "table": table,
        "quarantined_at": NOW,
    }  # fmt: skip


def test_quarantine_rows_that_failed_are_judged_by_what_they_hold(stream: Stream) -> None:
    values = [
        *([with_op(raw), raw] for raw in events("plain")),
        *([raw] for raw in as_json([*MADE, *({**row, "note": 1} for row in MADE)])),
        *([RoutedRow(PLAIN.changes, row).record()] for row in MADE),
    ]
    held = [quarantine_row(value) for each in values for value in each]
    held += [quarantine_row(raw, None) for raw in as_json(MADE)]
    held += [quarantine_row(b"no event"), {**quarantine_row(b""), "value": None}]
    fail("iceberg-failed", naming.REDRIVE, as_json(held))
    erased = in_memory(PLAIN, {CHANGED: above(GONE)})
    answer = redrive(stream, erased=lambda: erased)
    assert answer["dropped"] == 6 * len(GONE)
    assert len(stream.rows(naming.QUARANTINE)) == len(held) - 6 * len(GONE)
    assert redrive(stream)["objects"] == 0


def test_too_large_rows_of_erased_keys_do_not_stay(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdclake.redrive.service.MAX_RECORD_BYTES", 1)
    fail("iceberg-failed", "plain", as_json(GONE))
    erased = in_memory(PLAIN, {CHANGED: above(GONE)})
    answer = redrive(stream, erased=lambda: erased)
    assert (answer["dropped"], answer["too_large"], waiting()) == (len(GONE), {}, [])


def versions() -> list[ObjectVersion]:
    """Every version and delete marker of the bucket, which has versions from the first call on."""
    s3 = boto3.client("s3")
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    return list(object_versions(s3, BUCKET))


def plain(key: str) -> bytes:
    content = body(key)
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def records(key: str) -> dict[int, bytes]:
    """The records of an object, by the numbers of their lines."""
    lines = enumerate(plain(key).splitlines(), 1)
    return {number: base64.b64decode(json.loads(line)["rawData"]) for number, line in lines if line}


@pytest.mark.parametrize("packed", [False, True])
def test_an_object_moves_without_its_rows_of_erased_keys(stream: Stream, packed: bool) -> None:
    versions()
    given = as_json([*MADE, without(MADE[-1], "note")])
    fail("iceberg-failed", "plain", given)
    if packed:
        [version], [key] = versions(), waiting()
        compressed = gzip.compress(body(key))
        boto3.client("s3").delete_object(Bucket=BUCKET, Key=key, VersionId=version.version)
        boto3.client("s3").put_object(Bucket=BUCKET, Key=key, Body=compressed)
    erased = in_memory(PLAIN, {CHANGED: above(GONE)})
    redrive(stream, dry_run=True, erased=lambda: erased)
    assert [records(version.key) for version in versions()] == [dict(enumerate(given, 1))]
    redrive(stream, erased=lambda: erased)
    [left] = versions()
    assert "/redriven/" in left.key
    gone = {number for number, raw in enumerate(given, 1) if json.loads(raw)["id"] == CHANGED[0]}
    assert len(gone) == len(GONE)
    assert records(left.key) == {n: raw for n, raw in enumerate(given, 1) if n not in gone}
    [quarantined] = stream.rows(naming.QUARANTINE)
    assert quarantined["topic"] == f"s3://{BUCKET}/{left.key}"
    assert records(left.key)[quarantined["offset"]] == given[-1]


def test_an_object_with_rows_of_erased_keys_alone_leaves(stream: Stream) -> None:
    versions()
    fail("iceberg-failed", "plain", as_json(GONE))
    erased = in_memory(PLAIN, {CHANGED: above(GONE)})
    redrive(stream, erased=lambda: erased)
    assert versions() == []


def test_an_object_without_such_rows_moves_as_it_is(stream: Stream) -> None:
    fail("iceberg-failed", "plain", as_json(KEPT))
    [key] = waiting()
    content = body(key)
    erased = in_memory(PLAIN, {CHANGED: above(GONE)})
    redrive(stream, erased=lambda: erased)
    assert [body(moved) for moved in keys()] == [content]


def test_what_is_too_large_stays_without_rows_of_erased_keys(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions()
    fail("iceberg-failed", "plain", as_json(MADE))
    [key] = waiting()
    monkeypatch.setattr("cdclake.redrive.service.MAX_RECORD_BYTES", 1)
    erased = in_memory(PLAIN, {CHANGED: above(GONE)})
    answer = redrive(stream, erased=lambda: erased)
    rest, redriven = f"{key}-rest", key.replace("firehose/", "firehose/redriven/")
    assert answer["too_large"] == {f"s3://{BUCKET}/{rest}": len(KEPT)}
    assert [version.key for version in versions()] == [rest, redriven]
    assert [*records(rest).values()] == [*records(redriven).values()] == as_json(KEPT)


@pytest.mark.parametrize("step", ["put_object", "delete_object"])
@pytest.mark.parametrize("before", [True, False])
def test_a_crash_leaves_what_the_next_redrive_completes(
    stream: Stream, step: str, before: bool
) -> None:
    versions()
    fail("iceberg-failed", "plain", as_json(MADE))
    crashing = boto3.client("s3")
    real = getattr(crashing, step)

    def crash(**given: Any) -> None:
        if not before:
            real(**given)
        raise RuntimeError("killed")

    setattr(crashing, step, crash)
    erased = in_memory(PLAIN, {CHANGED: above(GONE)})
    with pytest.raises(RuntimeError, match="killed"):
        redrive(stream, s3=crashing, erased=lambda: erased)
    kept = [[*records(key).values()] for key in keys()]
    assert as_json(KEPT) in kept or kept == [as_json(MADE)]
    redrive(stream, erased=lambda: erased)
    assert waiting() == []
    assert {tuple(records(version.key).values()) for version in versions()} == {
        tuple(as_json(KEPT))
    }
    assert {*put(stream)} == {*lsns(KEPT)}


def test_an_object_that_another_run_has_moved_is_no_error(stream: Stream) -> None:
    fail("iceberg-failed", "plain", as_json(MADE))
    [key] = waiting()
    racing = boto3.client("s3")
    real, reads = racing.get_object, list[str]()

    def get(**given: Any) -> Any:
        reads.append(given["Key"])
        if reads == [key, key]:
            boto3.client("s3").delete_object(Bucket=BUCKET, Key=key)
        return real(**given)

    racing.get_object = get
    erased = in_memory(PLAIN, {CHANGED: above(GONE)})
    redrive(stream, s3=racing, erased=lambda: erased)
    assert (reads, keys()) == ([key, key], [])


def test_without_the_register_nothing_is_put_or_moved(stream: Stream) -> None:
    fail("iceberg-failed", "plain", as_json(MADE))
    before = waiting()
    absent = RecentRegister.of(boto3.client, control="s3://absent/control", salt=SECRET)
    with pytest.raises(ClientError, match="NoSuchBucket"):
        service(stream, erased=absent.read).page({})
    assert (stream.records, waiting()) == ([], before)


def test_the_handler_reads_the_environment_and_counts(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, real = with_plan("firehose_redrive", tmp_path, monkeypatch), boto3.client
    monkeypatch.setattr(
        boto3, "client", lambda name, **how: stream if name == "firehose" else real(name, **how)
    )
    keep_salt()
    register(PLAIN, CHANGED, above(GONE))
    fail("processing-failed", "plain", [*events("plain"), b""])
    answer = function.handler({}, None)
    assert (answer["dropped"], answer["erased"]) == (len(GONE) + 1, len(GONE))
    assert put(stream) == lsns(KEPT)
