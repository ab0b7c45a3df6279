"""A bucket with what failed, a stream that takes what is redriven, and what came of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import boto3
import pytest

from cdclake import naming
from cdclake.firehose.erased_rows import ReadErased
from cdclake.firehose.rows import encode
from cdclake.local.firehose.failures import ErrorPrefix, Kind
from cdclake.local.firehose.records import Failure
from cdclake.local.firehose.records import Record as Read
from cdclake.plan import Plan
from cdclake.redrive import batch_writer
from cdclake.redrive.catalog_changelogs import ReadChangelogs
from cdclake.redrive.pages import redrive_all
from cdclake.redrive.service import RedriveService
from cdclake.redrive.unwrap import unwrapped
from cdclake.widened_columns import ReadWidened, WidenedColumns
from tests.recorded.firehose import delivered, made_rows, stream_of
from tests.recorded.recording import Recording

BUCKET, PREFIX, OWN = "lake", "shop-dev", "shop-dev-cdclake.redrive"
NOW = 1_795_400_000_000_000  # a day after the recording
RECORDED = Recording.load("changes")


@lru_cache
def plan() -> Plan:
    plan = delivered(RECORDED.plan)
    plain, parent, *rest = plan.tables
    domain = [table for table in rest if table.name != "parts"]
    together = stream_of(
        domain[0],
        name="rest",
        topic="changes.rest",
        tables=tuple(t.name for t in domain),
        routed=True,
    )
    return replace(plan, deliveries=(stream_of(plain), stream_of(parent), together))


def events(table: str) -> list[bytes]:
    """The recorded values of a table's topic."""
    topic = plan().table(table).topic
    return [record.value for record in RECORDED.of_topic(topic) if record.value is not None]


def rows(table: str) -> list[dict[str, Any]]:
    """The rows that the function makes of the table's events."""
    found = plan().table(table)
    return [*made_rows(RECORDED.of_topic(found.topic), found, plan()).values()]


def as_json(given: Iterable[dict[str, Any]]) -> list[bytes]:
    return [encode(row).encode() for row in given]


@dataclass
class Stream:
    """Firehose as the redrive sees it; `refuses` says of each record whether it is not taken."""

    records: list[bytes] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    refuses: Any = None

    def put_record_batch(self, *, DeliveryStreamName: str, Records: Any) -> dict[str, Any]:
        data = [record["Data"] for record in Records]
        assert DeliveryStreamName == OWN
        assert 1 <= len(data) <= 500
        assert max(map(len, data)) <= 1_024_000
        assert sum(map(len, data)) <= 4 << 20
        self.calls.append(len(data))
        answers = []
        for each in data:
            if self.refuses is not None and self.refuses():
                answers.append({"ErrorCode": "ServiceUnavailableException", "ErrorMessage": "slow"})
            else:
                self.records.append(each)
                answers.append({"RecordId": str(len(self.records))})
        refused = sum("ErrorCode" in answer for answer in answers)
        return {"FailedPutCount": refused, "RequestResponses": answers}

    def rows(self, relation: str) -> list[dict[str, Any]]:
        """What was put for the relation, in its order."""
        return [dict(row) for name, row in map(unwrapped, self.records) if name == relation]

    def content(self) -> Counter[str]:
        """Every row without its moments, and how often it was put."""
        moments = (naming.INGESTED_AT, "quarantined_at")
        return Counter(
            json.dumps([name, {**row, **dict.fromkeys(moments)}], sort_keys=True)
            for name, row in map(unwrapped, self.records)
        )


def set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Create the bucket, and put rejected records again at once, twice."""
    where = {"LocationConstraint": "eu-west-1"}
    boto3.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
    monkeypatch.setattr(batch_writer, "PAUSES_S", (0.0, 0.0))


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def fail(kind: Kind, stream: str, raw: Sequence[bytes], *, prefix: str = PREFIX) -> None:
    """Have the stream of that name fail with these records, in one object."""
    name = naming.delivery_stream_name(prefix, stream)
    record = Read(0, 7, 1_795_300_000_000, b"")
    ErrorPrefix(boto3.client("s3"), BUCKET, plan().deliveries[0], name).write(
        kind, [Failure(record=record, code="Lambda.X", message="m", attempts=1, raw=r) for r in raw]
    )


def keys(folder: str = "firehose/") -> list[str]:
    listed = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=folder)
    return [entry["Key"] for entry in listed.get("Contents", [])]


def waiting() -> list[str]:
    """The objects that are not redriven."""
    return [key for key in keys() if "/redriven/" not in key]


def body(key: str) -> bytes:
    read: bytes = boto3.client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read()
    return read


def service(
    stream: Stream,
    *,
    of: Plan | None = None,
    s3: Any = None,
    now: int = NOW,
    clock: Callable[[], float] = time.monotonic,
    erased: ReadErased = dict,
    widened: ReadWidened = WidenedColumns,
    changelogs: ReadChangelogs = dict,
) -> RedriveService:
    """The service of a deployment of the plan, with this stream in place of Firehose."""
    return RedriveService(
        of or plan(),
        prefix=PREFIX,
        bucket=BUCKET,
        s3=s3 or boto3.client("s3"),
        firehose=stream,
        erased=erased,
        widened=widened,
        changelogs=changelogs,
        now_us=lambda: now,
        clock=clock,
    )


def redrive(stream: Stream, *, dry_run: bool = False, **how: Any) -> dict[str, Any]:
    """Redrive all pages, as the command does."""
    return redrive_all(service(stream, **how).page, dry_run=dry_run)
