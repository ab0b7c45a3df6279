"""Failed records of erased keys leave Firehose's error prefixes, in each form that they have."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

import boto3
import pytest

from cdclake import naming
from cdclake.erasures import ErasedKeys
from cdclake.firehose.rows import encode
from cdclake.jobs.erasure.stored_objects import object_versions
from cdclake.jobs.forget.failed_records import FailedRecords, error_prefixes
from cdclake.local.firehose.failed import failed_records
from cdclake.redrive.failed_events import FailedEvents
from cdclake.redrive.failed_rows import Origin
from cdclake.redrive.routed_rows import RoutedRow
from tests.unit.deployed.erasing import in_memory
from tests.unit.deployed.redriving import (
    BUCKET,
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
)

TABLE = plan().table("plain")
AFTER_ALL = "~"


pytestmark = pytest.mark.usefixtures("redrive_deployed")


def erased(*numbers: Any, position: str = AFTER_ALL) -> dict[str, ErasedKeys]:
    return in_memory(TABLE, {(number,): position for number in numbers})


def remove(keys_: Mapping[str, ErasedKeys]) -> int:
    records = FailedRecords(boto3.client("s3"), BUCKET, FailedEvents(plan()), keys_)
    return sum(records.remove(prefix) for prefix in error_prefixes(plan(), TABLE))


def lines(key: str) -> list[bytes]:
    content = body(key)
    plain = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    return [base64.b64decode(json.loads(line)["rawData"]) for line in plain.splitlines() if line]


def number(row: dict[str, Any]) -> Any:
    [key] = TABLE.key
    return row[key]


def test_events_rows_and_wrapped_rows_leave_and_all_others_stay() -> None:
    made = rows(TABLE.name)
    chosen = number(made[0])
    mine = [row for row in made if number(row) == chosen]
    others = [row for row in made if number(row) != chosen]
    assert mine and others
    wrapped = [RoutedRow(TABLE.changes, row).record() for row in made]
    fail("processing-failed", TABLE.name, [*events(TABLE.name), b"no event"])
    fail("iceberg-failed", TABLE.name, as_json(made))
    fail("processing-failed", naming.REDRIVE, wrapped)
    removed = remove(erased(chosen))
    assert removed == 3 * len(mine)
    left = [record for key in keys() for record in lines(key)]
    found = [FailedEvents(plan()).read(record) for record in left]
    assert [event for event in found if event is not None and event.key == [chosen]] == []
    assert len(left) == 3 * len(others) + 1 and b"no event" in left
    assert remove(erased(chosen)) == 0


def test_the_records_that_stay_keep_their_lines_and_are_counted() -> None:
    """The quarantine names a record by its object and its line, also after a second redrive."""
    made = rows(TABLE.name)
    fail("iceberg-failed", TABLE.name, as_json(made))
    [key] = keys()
    before = body(key).splitlines()
    assert 0 < remove(erased(number(made[0]))) < len(made)
    after = body(key).splitlines()
    mine = [number(row) == number(made[0]) for row in made]
    assert after == [b"" if gone else line for line, gone in zip(before, mine, strict=True)]
    [stream, *_] = plan().deliveries
    name = naming.delivery_stream_name(PREFIX, TABLE.name)
    counted = failed_records(boto3.client("s3"), BUCKET, stream, name)
    assert counted is not None and counted.records == len(made) - sum(mine)


def test_events_after_the_erasure_stay() -> None:
    made = rows(TABLE.name)
    fail("iceberg-failed", TABLE.name, as_json(made))
    earliest = min(row[naming.POSITION] for row in made)
    assert remove(erased(*map(number, made), position=earliest)) == 0
    fitting = [row for row in made if row[naming.POSITION] > earliest]
    assert remove(erased(*map(number, made), position=fitting[-1][naming.POSITION])) > 0


def test_an_event_whose_position_cannot_be_read_leaves() -> None:
    event = json.loads(events(TABLE.name)[0])
    event["source"]["sequence"] = None
    fail("processing-failed", TABLE.name, [encode(event).encode()])
    [key] = TABLE.key
    assert remove(erased(event["after"][key], position="0")) == 1
    assert keys() == []


def test_redriven_records_leave_and_so_do_older_versions() -> None:
    s3 = boto3.client("s3")
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    made = rows(TABLE.name)
    fail("iceberg-failed", TABLE.name, as_json(made))
    redrive(Stream())
    [moved] = keys()
    assert "/redriven/" in moved
    assert remove(erased(*map(number, made))) == len(made)
    assert [v for v in object_versions(s3, BUCKET) if not v.is_marker] == []


def test_a_row_with_the_names_of_an_event_is_a_row() -> None:
    row = {**rows(TABLE.name)[0], "op": "d", "source": "shop"}
    found = FailedEvents(plan()).read(encode(row).encode(), Origin.one(TABLE.name))
    assert found is not None and found.key == [number(row)]


def test_a_row_that_fits_no_changelog_stays() -> None:
    """It may be another table's: the proof of the erasure names the object then."""
    row = {**rows(TABLE.name)[0], "further": 1}
    fail("iceberg-failed", TABLE.name, as_json([row]))
    assert remove(erased(number(row))) == 0


def test_an_object_that_is_written_again_keeps_no_older_version() -> None:
    s3 = boto3.client("s3")
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    made = rows(TABLE.name)
    fail("iceberg-failed", TABLE.name, as_json(made))
    assert 0 < remove(erased(number(made[0]))) < len(made)
    [version] = object_versions(s3, BUCKET)
    assert version.is_newest and number(made[0]) not in [
        json.loads(record)[TABLE.key[0]] for record in lines(version.key)
    ]
