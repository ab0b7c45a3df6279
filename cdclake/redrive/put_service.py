"""Redrive of failed put records: each is put into its stream again, an object at a time.

Under `processing-failed/` Firehose keeps the bytes that the stream's function refused. The function
checks them again with the columns that are declared now; what it refuses fails again, into a new
object. An object moves to `redriven/` once its stream has accepted all of its records, and only
then the next one starts: a run that ends in between repeats at most the records of one object. Only
a table's key removes these duplicates, for readers that read each key once.

Under `iceberg-failed/` are rows that no table took. A row is converted into a record that makes the
same row, if that is certain; it is not where a user's handler runs first, nor for web logs. AWS
does not document that these are rows: bytes that fit their table as a record are put as they are.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cdclake import naming
from cdclake.firehose.stream import DeliveryStream
from cdclake.plan import Plan
from cdclake.puts.row_record import RowRecords
from cdclake.redrive.batch_writer import MAX_RECORD_BYTES, BatchWriter, ShardWriter
from cdclake.redrive.objects import FailedObject, FailedObjects, Line, raw_data
from cdclake.redrive.pages import redrive_page

log = logging.getLogger()

# What the remedy of a redrive that failed adds for put records.
PUTS_REPEATED = "; that repeats the records of the last object that were already put"


@dataclass
class PutRedriveResult:
    """Outcome of one page."""

    objects: int = 0
    put_again: Counter[str] = field(default_factory=Counter)  # by stream in the plan
    kept: dict[str, int] = field(default_factory=dict)  # by the object that keeps them


class PutRedriveService:
    """Redrive of the put streams of one deployment, page by page.

    The names of the deployment's streams start with `prefix`; in a local lake that is the
    pipeline's name. `s3`, `firehose` and `kinesis` are boto3 clients.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        prefix: str,
        bucket: str,
        s3: Any,
        firehose: Any,
        kinesis: Any,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix, self._firehose, self._kinesis, self._clock = prefix, firehose, kinesis, clock
        self._streams = {
            naming.delivery_stream_name(prefix, stream.name): stream for stream in plan.put_streams
        }
        self._records = {put.name: RowRecords(put) for put in plan.puts if put.transform is None}
        folders = [stream.error_prefix for stream in plan.put_streams]
        self._objects = FailedObjects(s3, bucket, folders, self._streams.__contains__)

    def page(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Redrive the next objects, as `RedriveService.page` does.

        Raise PutRejected, or an error of AWS, if the page cannot be completed: nothing is lost, and
        a later run puts the records of the last object again.
        """
        dry_run, result = request.get("dry_run", False), PutRedriveResult()

        def redrive(failed: FailedObject) -> None:
            self._redrive_object(failed, result, dry_run=dry_run)

        reached = redrive_page(self._objects, request, redrive, self._clock)
        log.info("%s", result)
        return {**vars(result), **reached}

    def _redrive_object(
        self, failed: FailedObject, result: PutRedriveResult, *, dry_run: bool
    ) -> None:
        """Put all records of an object, and move it once they are accepted."""
        stream = self._streams[failed.stream]
        writer, kept, count = self._writer(stream), list[bytes](), 0
        for line in self._objects.lines(failed):
            record = self._record(line)
            if record is None:
                kept.append(line.text)
                continue
            count += 1
            if not dry_run:
                writer.add(record)
        writer.flush()
        result.objects += 1
        result.put_again[stream.name] += count
        key = failed.key
        if (count or not kept) and not dry_run:
            key = self._objects.move(failed, kept) or key
        if kept:
            result.kept[self._objects.address(key)] = len(kept)

    def _record(self, line: Line) -> bytes | None:
        """Return the record of a line; None if it cannot be put."""
        record: bytes | None
        try:
            record = raw_data(line.text)
        except ValueError:
            return None
        if line.kind == "iceberg-failed":
            records = self._records.get(self._streams[line.stream].name)
            record = None if records is None else records.of(record)
        return record if record and len(record) <= MAX_RECORD_BYTES else None

    def _writer(self, stream: DeliveryStream) -> BatchWriter:
        """Return a writer into what producers put into: Firehose, or the stream that it reads."""
        if stream.source == "kinesis":
            name = naming.kinesis_stream_name(self._prefix, stream.name)
            return ShardWriter(self._kinesis, name)
        return BatchWriter(self._firehose, naming.delivery_stream_name(self._prefix, stream.name))
