"""One stream of Firehose: from its source through the function, if it has one, to its tables.

Offsets are committed when everything before them is in a log, under the error prefix, or dropped.
Whoever dies before that reads it again: at least once, as Firehose delivers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pyiceberg.schema import Schema

from cdclake.firehose.stream import DeliveryStream
from cdclake.local.firehose.failures import Kind
from cdclake.local.firehose.fault_injection import CALM, Trouble
from cdclake.local.firehose.function import LocalFunction
from cdclake.local.firehose.records import Failure, Made, Record
from cdclake.local.firehose.routes import routed
from cdclake.local.firehose.rows import Misfit, read_row

log = logging.getLogger("cdclake.firehose")

# A local lake does not let anybody wait as long as AWS lets files grow.
LONGEST_CALL_S, LONGEST_BUFFER_S = 1.0, 10.0
MAX_RECORDS_PER_READ = 2_000  # read of the source
RETRY_INTERVAL_S = 1.0
_MIB = 1 << 20
_NOT_DELIVERED = "Iceberg.DeliveryFailed"  # a code of ours: AWS documents none


class RecordSource(Protocol):
    """A topic, a stream of Kinesis or what was put directly, read from where it was committed."""

    def read(self, most: int) -> Sequence[Record]:
        """The next records, if any come within a moment."""

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Everything before these offsets, by partition, is delivered."""


class Tables(Protocol):
    """The logs and tables of a database."""

    def schema(self, table: str) -> Schema:
        """A table's columns as they are now."""

    def append(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows in one commit."""


class Errors(Protocol):
    """The error prefix."""

    def write(self, kind: Kind, failures: Sequence[Failure]) -> None:
        """Keep what failed."""


class Backups(Protocol):
    """What `backup: all` keeps."""

    def keep(self, records: Sequence[Record]) -> None:
        """Keep what was read, as it came."""


class _Row(NamedTuple):
    made: Made
    table: str


class Delivery:
    """Delivers one stream, turn by turn; what it holds when it ends is read again by the next."""

    def __init__(
        self,
        stream: DeliveryStream,
        database: str,
        *,
        source: RecordSource,
        function: LocalFunction | None,
        tables: Tables,
        errors: Errors,
        backup: Backups | None = None,
        trouble: Trouble = CALM,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.stream, self._database = stream, database
        self._source, self._function = source, function
        self._tables, self._errors, self._backup = tables, errors, backup
        self._trouble, self._clock, self._pause = trouble, clock, pause
        self._waiting: list[Record] = []  # for the function
        self._rows: list[_Row] = []  # for the logs
        self._waiting_since = self._rows_since = 0.0
        self._next: dict[int, int] = {}  # by partition, behind everything that was read
        self._committed: dict[int, int] = {}
        self.commits = 0  # made to logs so far

    def turn(self) -> None:
        """Take what has come, and hand on what has waited long enough or is enough."""
        self._take(self._source.read(MAX_RECORDS_PER_READ))
        wait_s = min(self.stream.function_seconds, LONGEST_CALL_S)
        mib = sum(len(record.value or b"") for record in self._waiting) / _MIB
        if self._is_due(self._waiting_since, wait_s, mib >= self.stream.function_mib):
            self._call()
        wait_s = min(self.stream.buffer_seconds, LONGEST_BUFFER_S)
        mib = sum(len(row.made.data) for row in self._rows) / _MIB
        if self._is_due(self._rows_since, wait_s, mib >= self.stream.buffer_mib):
            self._deliver()

    def drain(self) -> None:
        """Deliver all that has come, however little it is; what is held back comes, too."""
        while records := self._source.read(MAX_RECORDS_PER_READ):
            self._take(records)
            self._call()
        while self._rows:
            self._deliver()
        self._commit()

    def _is_due(self, since: float, wait_s: float, is_enough: bool) -> bool:
        return is_enough or self._clock() - since >= wait_s

    def _take(self, records: Sequence[Record]) -> None:
        if records and not self._waiting:
            self._waiting_since = self._clock()
        self._waiting.extend(records)
        for record in records:
            self._next[record.partition] = record.offset + 1

    def _call(self) -> None:
        """Have the function make rows of what waits, in calls of its size."""
        while self._waiting:
            size = self._fits_a_call()
            if self._backup is not None:
                self._backup.keep(self._waiting[:size])
            for part in self._trouble.parts(self._waiting[:size]):
                made, failures = self._transform(part)
                self._errors.write("processing-failed", failures)
                by_table, lost = routed(self.stream, self._database, made)
                self._errors.write("iceberg-failed", lost)
                if not self._rows:
                    self._rows_since = self._clock()
                self._rows += [_Row(row, table) for table, rows in by_table.items() for row in rows]
            del self._waiting[:size]

    def _transform(self, records: Sequence[Record]) -> tuple[list[Made], list[Failure]]:
        if self._function is None:
            return [Made(record, record.value or b"", {}) for record in records], []
        return self._function.transform(records)

    def _fits_a_call(self) -> int:
        room = self.stream.function_mib * _MIB
        for number, record in enumerate(self._waiting):
            room -= len(record.value or b"")
            if room < 0:
                return max(number, 1)
        return len(self._waiting)

    def _deliver(self) -> None:
        """Append the rows to their logs, then commit what is behind."""
        now, later = self._trouble.held_back(self._trouble.order(self._rows))
        by_table: dict[str, list[Made]] = {}
        for row in now:
            by_table.setdefault(row.table, []).append(row.made)
        for table, rows in by_table.items():
            for part in self._trouble.parts(rows):
                self._append(table, part)
        self._rows, self._rows_since = later, self._clock()
        self._commit()

    def _append(self, table: str, rows: Sequence[Made]) -> None:
        """In one commit, tried as long as the stream retries; what does not fit fails at once."""
        deadline = self._clock() + self.stream.retry_seconds
        attempts = 0
        while True:
            attempts += 1
            try:
                failures = self._try_append(table, rows, attempts)
                break
            except Exception as error:
                log.warning("%s: an append to %s failed: %s", self.stream.name, table, error)
                if self._clock() >= deadline:
                    message = f"{type(error).__name__}: {error}"
                    failures = [_failure(r, _NOT_DELIVERED, message, attempts) for r in rows]
                    break
                self._pause(RETRY_INTERVAL_S)
        self._errors.write("iceberg-failed", failures)

    def _try_append(self, table: str, rows: Sequence[Made], attempts: int) -> list[Failure]:
        schema = self._tables.schema(table)
        fitting: list[Mapping[str, Any]] = []
        failures: list[Failure] = []
        for row in rows:
            try:
                fitting.append(read_row(row.data, schema))
            except Misfit as misfit:
                failures.append(_failure(row, misfit.code, misfit.message, attempts))
        self._strike()
        if fitting:
            self._tables.append(table, fitting)
            self.commits += 1
        self._strike()  # nobody hears that the commit was made: it is made again
        return failures

    def _strike(self) -> None:
        if self._trouble.strikes():
            raise ConnectionError("asked to fail")

    def _commit(self) -> None:
        delivered = dict(self._next)
        held = [*self._waiting, *(row.made.record for row in self._rows)]
        for record in held:
            delivered[record.partition] = min(delivered[record.partition], record.offset)
        if delivered != self._committed:
            self._source.commit(delivered)
            self._committed = delivered


def _failure(row: Made, code: str, message: str, attempts: int) -> Failure:
    return Failure(record=row.record, code=code, message=message, attempts=attempts, raw=row.data)
