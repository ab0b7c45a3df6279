"""Redrives what Firehose could not deliver: called until it says that there is no more.

It reads the objects under the error prefix, makes rows anew of their records with the plan of
today, and puts them into a stream of their own: what has become a row for its log, the rest for the
quarantine. When Firehose has accepted all of an object's rows, the object moves to `redriven/`.
Whoever is stopped before that leaves it where it was, and the next call brings the same rows again,
which the readers of logs and quarantine take for one.

A record that is too large to be put stays under the error prefix.

Environment: BUCKET; PREFIX of the deployment, with which its streams' names begin. Beside it lies
the plan (plan.json).
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from cdclake import naming
from cdclake.plan import Plan
from cdclake.redrive.batch_writer import MAX_RECORD_BYTES, BatchWriter
from cdclake.redrive.objects import FailedObject, FailedObjects
from cdclake.redrive.routed_rows import Redrive, RoutedRow

log = logging.getLogger()
log.setLevel(logging.INFO)

PLAN = Path(__file__).parent / "plan.json"
MAX_RUN_S = 60.0  # no object is begun later: one, as large as Firehose makes it, may take minutes
_CALLS = Config(retries={"mode": "standard", "total_max_attempts": 8})


@dataclass
class RedriveResult:
    """What a call did."""

    objects: int = 0
    redriven: Counter[str] = field(default_factory=Counter)  # by log
    dropped: int = 0  # no change of a table
    quarantined: Counter[str] = field(default_factory=Counter)  # by reason
    too_large: dict[str, int] = field(default_factory=dict)  # by the object in which they stay

    def note(self, made: RoutedRow | None) -> None:
        """Count what became of a record."""
        if made is None:
            self.dropped += 1
        elif made.relation == naming.QUARANTINE:
            self.quarantined[made.reason or ""] += 1
        else:
            self.redriven[made.relation] += 1


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Redrive what had failed when the first call began.

    While the answer has `more`, its `before` and `after` are the next call's event. With `dry_run`
    nothing is put and nothing moves. NotAccepted, or an error of AWS, if it could not go on: then
    nothing is lost, and what was put comes again.
    """
    del context
    plan = Plan.from_json(PLAN.read_text(encoding="utf-8"))
    before = datetime.fromisoformat(event.get("before") or datetime.now(UTC).isoformat())
    after, more, turn = (
        event.get("after") or "",
        False,
        RedriveRun(plan, event.get("dry_run", False)),
    )
    ends = time.monotonic() + MAX_RUN_S
    for failed in turn.objects.listed(after=after, before=before):
        if time.monotonic() > ends:
            more = True
            break
        turn.take(failed)
        after = failed.key
    log.info("%s", turn.done)
    return {**vars(turn.done), "more": more, "before": before.isoformat(), "after": after}


def now_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class RedriveRun:
    """One call's work."""

    def __init__(self, plan: Plan, dry_run: bool) -> None:
        prefix = os.environ["PREFIX"]
        foreign = {naming.delivery_stream_name(prefix, logs.name) for logs in plan.web_logs}
        folders = [stream.error_prefix for stream in plan.deliveries]
        self._bucket, self._dry_run = os.environ["BUCKET"], dry_run
        self.objects = FailedObjects(
            boto3.client("s3", config=_CALLS), self._bucket, folders, foreign
        )
        stream = naming.delivery_stream_name(prefix, naming.REDRIVE)
        self._puts = BatchWriter(boto3.client("firehose", config=_CALLS), stream)
        self._redrive = Redrive(plan, prefix)
        self.done = RedriveResult()

    def take(self, failed: FailedObject) -> None:
        """Put all rows of an object, and only when they are accepted move it."""
        left: list[bytes] = []
        is_done = False
        for line in self.objects.lines(failed):
            made = self._redrive.route(line, now_us())
            record = made.record() if made is not None else b""
            if len(record) > MAX_RECORD_BYTES:
                left.append(line.text)
                continue
            is_done = True
            self.done.note(made)
            if record and not self._dry_run:
                self._puts.add(record)
        self._puts.flush()
        self.done.objects += 1
        place = failed.key
        if (is_done or not left) and not self._dry_run:
            place = self.objects.move(failed, left) or place
        if left:
            self.done.too_large[f"s3://{self._bucket}/{place}"] = len(left)
