"""Reading of the source by PostgreSQL's binary COPY to Arrow, within an exported snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from adbc_driver_postgresql import dbapi
from psycopg.conninfo import make_conninfo

from cdclake.jobs.runtime.dsn import with_authorities
from cdclake.postgres.bulk_read import import_snapshot

# A chunk that is read again has its rows in the same order.
_SAME_ORDER = ("SET synchronize_seqscans = off", "SET max_parallel_workers_per_gather = 0")


class SourceRefused(RuntimeError):
    """The source refused a connection or a query; the text is its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReader:
    """Access to a snapshot of the source, for the driver and for Spark's tasks."""

    words: Mapping[str, str] = field(repr=False)  # parameters of libpq, the password among them
    authorities: str = field(repr=False)  # PEM; "" if the parameters name no file of this machine
    snapshot: str

    @contextmanager
    def batches(self, query: str) -> Iterator[Iterator[pa.RecordBatch]]:
        """Run a SELECT; its rows come in batches of some megabytes.

        Raises SourceRefused with the database's reason, also while the batches are read.
        """
        with self._conninfo() as conninfo, _cursor(conninfo) as cursor:
            with _refusals():
                for statement in (*import_snapshot(self.snapshot), *_SAME_ORDER):
                    cursor.execute(statement)
                cursor.execute(query)
                rows = cursor.fetch_record_batch()
            yield _read(rows)

    def number(self, query: str) -> int:
        """Return the only value of a SELECT."""
        with self.batches(query) as batches:
            return int(pa.Table.from_batches(list(batches)).column(0)[0].as_py())

    def _conninfo(self) -> AbstractContextManager[str]:
        return with_authorities(make_conninfo(**self.words), self.authorities)


@contextmanager
def _cursor(conninfo: str) -> Iterator[dbapi.Cursor]:
    with _refusals():
        opened = dbapi.connect(conninfo)
    with opened as connection, connection.cursor() as cursor:
        yield cursor


def _read(rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            with _refusals():
                batch = rows.read_next_batch()
        except StopIteration:
            return
        yield batch


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise SourceRefused if the driver, or Arrow's reader of its rows, fails."""
    try:
        yield
    except (dbapi.Error, OSError) as error:
        raise SourceRefused(_reason(str(error))) from None


def _reason(message: str) -> str:
    """Return PostgreSQL's own line in a message of the driver, which repeats the whole query.

    >>> _reason("IO: Failed to prepare query: ERROR:  permission denied for table t")
    'permission denied for table t'
    """
    first = message.splitlines()[0]
    for severity in ("ERROR:", "FATAL:"):
        if severity in first:
            return first.split(severity, 1)[1].strip()
    return first
