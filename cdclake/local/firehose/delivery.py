"""Delivery of one stream: from its source through the function, if it has one, to its tables.

Offsets are committed when all records before them are in a table, under the error prefix, or
dropped. After a crash the records after the last committed offset are read again: delivery is
at-least-once, as in Firehose.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pyiceberg.schema import Schema

from cdclake.firehose.stream import DeliveryStream
from cdclake.local.firehose.failures import Kind
from cdclake.local.firehose.fault_injection import NO_FAULTS, FaultInjector
from cdclake.local.firehose.function import LocalFunction
from cdclake.local.firehose.records import Failure, Made, Record
from cdclake.local.firehose.routes import routed
from cdclake.local.firehose.rows import Misfit, read_row

log = logging.getLogger("cdclake.firehose")

# Shorter than on AWS, where files may grow for minutes.
LONGEST_CALL_S, LONGEST_BUFFER_S = 1.0, 10.0
MAX_RECORDS_PER_READ = 2_000
RETRY_INTERVAL_S = 1.0
_MIB = 1 << 20
_NOT_DELIVERED = "Iceberg.DeliveryFailed"  # not from AWS, which documents no code


class RecordSource(Protocol):
    """A topic, a Kinesis stream or a journal of direct puts, read from the committed offset on."""

    def read(self, most: int) -> Sequence[Record]:
        """Return the next records, if any arrive within a fraction of a second."""

    def commit(self, offsets: Mapping[int, int], dropped: int = 0) -> None:
        """Store these offsets by partition: all records before them are delivered.

        `dropped` of those since the last call have no row, since the function dropped them.
        """


class Tables(Protocol):
    """Tables of a database, changelogs included."""

    def schema(self, table: str) -> Schema:
        """Return a table's current columns."""

    def append(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows in one commit."""


class Errors(Protocol):
    """Writer of failed records under the error prefix."""

    def write(self, kind: Kind, failures: Sequence[Failure]) -> None:
        """Keep the failed records."""


class _Row(NamedTuple):
    made: Made
    table: str


class _Place(NamedTuple):
    partition: int
    offset: int
    part: int | None


class Delivery:
    """Delivery of one stream, turn by turn; records that it holds when it ends are read again."""

    def __init__(
        self,
        stream: DeliveryStream,
        database: str,
        *,
        source: RecordSource,
        function: LocalFunction | None,
        tables: Tables,
        errors: Errors,
        faults: FaultInjector = NO_FAULTS,
        longest_buffer_s: float = LONGEST_BUFFER_S,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.stream, self._database = stream, database
        self._source, self._function = source, function
        self._tables, self._errors = tables, errors
        self._faults, self._clock, self._pause = faults, clock, pause
        self._buffer_s = min(stream.buffer_seconds, longest_buffer_s)
        self._waiting: list[Record] = []  # for the function
        self._rows: list[_Row] = []  # for the tables
        self._row_bytes = 0  # of all rows: a buffer may hold them for minutes
        self._waiting_since = self._rows_since = 0.0
        self._dropped: set[_Place] = set()  # not committed
        self._next: dict[int, int] = {}  # by partition, after the last record that was read
        self._committed: dict[int, int] = {}

    def turn(self) -> None:
        """Read new records, and empty each buffer that is full or old enough."""
        self._take(self._source.read(MAX_RECORDS_PER_READ))
        wait_s = min(self.stream.function_seconds, LONGEST_CALL_S)
        mib = sum(len(record.value or b"") for record in self._waiting) / _MIB
        if self._is_due(self._waiting_since, wait_s, mib >= self.stream.function_mib):
            self._call()
        mib = self._row_bytes / _MIB
        if self._is_due(self._rows_since, self._buffer_s, mib >= self.stream.buffer_mib):
            self._deliver()

    def drain(self) -> None:
        """Deliver all records at once, including those that are held back."""
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
        """Call the function with the waiting records, in calls of the configured size."""
        while self._waiting:
            size = self._fits_a_call()
            for part in self._faults.parts(self._waiting[:size]):
                made, failures = self._transform(part)
                self._errors.write("processing-failed", failures)
                answered = [*(row.record for row in made), *(f.record for f in failures)]
                self._dropped |= {*map(_place, part)} - {*map(_place, answered)}
                by_table, lost = routed(self.stream, self._database, made)
                self._errors.write("iceberg-failed", lost)
                if not self._rows:
                    self._rows_since = self._clock()
                rows = [_Row(row, table) for table, listed in by_table.items() for row in listed]
                self._rows += rows
                self._row_bytes += _size(rows)
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
        """Append the rows to their tables, then commit the offsets."""
        now, later = self._faults.held_back(self._faults.order(self._rows))
        by_table: dict[str, list[Made]] = {}
        for row in now:
            by_table.setdefault(row.table, []).append(row.made)
        for table, rows in by_table.items():
            for part in self._faults.parts(rows):
                self._append(table, part)
        self._rows, self._rows_since = later, self._clock()
        self._row_bytes = _size(later)
        self._commit()

    def _append(self, table: str, rows: Sequence[Made]) -> None:
        """Append in one commit, with the stream's retries; rows that do not fit fail at once."""
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
        self._strike()  # a commit whose answer is lost is made again
        return failures

    def _strike(self) -> None:
        if self._faults.should_fail():
            raise ConnectionError("injected failure")

    def _commit(self) -> None:
        delivered = dict(self._next)
        held = [*self._waiting, *(row.made.record for row in self._rows)]
        for record in held:
            delivered[record.partition] = min(delivered[record.partition], record.offset)
        if delivered != self._committed:
            done = {each for each in self._dropped if each.offset < delivered[each.partition]}
            self._source.commit(delivered, len(done))
            self._dropped -= done
            self._committed = delivered


def _place(record: Record) -> _Place:
    return _Place(record.partition, record.offset, record.part)


def _size(rows: Sequence[_Row]) -> int:
    return sum(len(row.made.data) for row in rows)


def _failure(row: Made, code: str, message: str, attempts: int) -> Failure:
    return Failure(record=row.record, code=code, message=message, attempts=attempts, raw=row.data)
