"""Redrive of failed changes: one page of objects per call.

A page reads objects under the error prefix, decodes their records with the current plan, and puts
the rows into the redrive stream: a record that can be decoded goes to its changelog, any other to
quarantine. An object moves to `redriven/` once Firehose has accepted all of its rows. If a run
stops before that, the object stays where it was and the next run puts the same rows again, which
readers of changelogs and quarantine deduplicate. Records of erased keys are neither put nor moved:
they leave with the object.

A record that is too large to be put stays under the error prefix; so does one of a table whose
changelog the stream has yet to widen, since a larger value would go to quarantine.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cdclake import naming
from cdclake.debezium.refusals import without_value
from cdclake.firehose.erased_rows import ErasedEvent, ReadErased
from cdclake.plan import Plan
from cdclake.redrive.batch_writer import MAX_RECORD_BYTES, BatchWriter
from cdclake.redrive.catalog_changelogs import ReadChangelogs
from cdclake.redrive.objects import FailedObject, FailedObjects
from cdclake.redrive.pages import redrive_page
from cdclake.redrive.routed_rows import AwaitedChangelog, Redrive, RoutedRow
from cdclake.widened_columns import ReadWidened, WidenedColumns

log = logging.getLogger()


@dataclass
class RedriveResult:
    """Outcome of one page."""

    objects: int = 0
    redriven: Counter[str] = field(default_factory=Counter)  # by changelog
    dropped: int = 0  # not a change of a table, or erased
    erased: int = 0  # of those dropped: the key was erased after the change
    quarantined: Counter[str] = field(default_factory=Counter)  # by reason
    quarantined_of: Counter[str] = field(default_factory=Counter)  # by table, if that is known
    too_large: dict[str, int] = field(default_factory=dict)  # by the object that keeps them
    awaited: Counter[str] = field(default_factory=Counter)  # by changelog: not widened yet, kept

    def note(self, routed: RoutedRow | None) -> None:
        """Count the outcome of one record."""
        if routed is None:
            self.dropped += 1
        elif routed.relation == naming.QUARANTINE:
            self.quarantined[without_value(routed.reason or "")] += 1
            if table := routed.row.get("table"):
                self.quarantined_of[str(table)] += 1
        else:
            self.redriven[routed.relation] += 1


def now_us() -> int:
    """Return the current time in microseconds since 1970."""
    return time.time_ns() // 1000


class RedriveService:
    """Redrive of one deployment, page by page.

    The names of the deployment's streams start with `prefix`; in a local lake that is the
    pipeline's name. `s3` and `firehose` are boto3 clients, `erased` returns the erased keys,
    `widened` the columns that the source has widened, `changelogs` the catalog's changelogs.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        prefix: str,
        bucket: str,
        s3: Any,
        firehose: Any,
        erased: ReadErased,
        widened: ReadWidened = WidenedColumns,
        changelogs: ReadChangelogs,
        now_us: Callable[[], int] = now_us,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        foreign = {naming.delivery_stream_name(prefix, each.name) for each in plan.put_streams}
        folders = [stream.error_prefix for stream in plan.deliveries]
        self._objects = FailedObjects(s3, bucket, folders, lambda name: name not in foreign)
        self._firehose = firehose
        self._stream = naming.delivery_stream_name(prefix, naming.REDRIVE)
        self._plan, self._widened, self._changelogs = plan, widened, changelogs
        self._redrive = Redrive(plan, prefix, erased)
        ours = {naming.delivery_stream_name(prefix, each.name) for each in plan.deliveries}
        self._ours = {*ours, self._stream, ""}  # "": an object that the operator has written
        self._now_us, self._clock = now_us, clock

    def page(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Redrive the next objects that had failed when the first page of the run started.

        Request keys, all optional: `dry_run` (put and move nothing), and `before` and `after` of
        the previous answer, which has `more` while objects are left. Raise PutRejected, or an
        error of AWS, if the page cannot be completed, or the erased keys or the catalog cannot be
        read: nothing is lost, and a later run puts the rows again.
        """
        self._follow()
        dry_run = request.get("dry_run", False)
        writer, result = BatchWriter(self._firehose, self._stream), RedriveResult()

        def redrive(failed: FailedObject) -> None:
            if self._has_changes(failed):
                self._redrive_object(failed, writer, result, dry_run=dry_run)

        reached = redrive_page(self._objects, request, redrive, self._clock)
        log.info("%s", result)
        return {**vars(result), **reached}

    def _follow(self) -> None:
        """Decode this page with the types that the changelogs have now."""
        widened, plan = self._widened(), self._plan
        self._redrive.follow(widened.over(plan), widened.awaited(plan), self._changelogs)

    def _has_changes(self, failed: FailedObject) -> bool:
        """Return whether the object is of a stream of changes, also of one that was removed.

        Tables of a removed domain may be in another one now. The records of a removed put stream
        stay for its redrive, in case the operator adds it again.
        """
        lines = self._objects.lines(failed)
        return failed.stream in self._ours or any(map(self._redrive.is_change, lines))

    def _redrive_object(
        self, failed: FailedObject, writer: BatchWriter, result: RedriveResult, *, dry_run: bool
    ) -> None:
        """Put all rows of an object, and move it once they are accepted."""
        rest: list[bytes] = []
        too_large, is_done, has_erased = 0, False, False
        for line in self._objects.lines(failed):
            try:
                routed = self._redrive.route(line, self._now_us())
            except ErasedEvent:
                routed, has_erased = None, True
                result.erased += 1
            except AwaitedChangelog as awaited:
                rest.append(line.text)
                result.awaited[awaited.changelog] += 1
                continue
            record = routed.record() if routed is not None else b""
            if len(record) > MAX_RECORD_BYTES:
                rest.append(line.text)
                too_large += 1
                continue
            is_done = True
            result.note(routed)
            if record and not dry_run:
                writer.add(record)
        writer.flush()
        result.objects += 1
        key = failed.key
        if (is_done or not rest) and not dry_run:
            key = self._move(failed, rest, has_erased=has_erased) or key
        if too_large:
            result.too_large[self._objects.address(key)] = too_large

    def _move(self, failed: FailedObject, rest: list[bytes], *, has_erased: bool) -> str | None:
        if has_erased:
            return self._objects.move_without(failed, rest, self._redrive.is_erased)
        return self._objects.move(failed, rest)
