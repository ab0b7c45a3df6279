"""Snapshot of the source for one poll, and the rows that Spark's tasks read from it.

The driver's transaction exports its snapshot and keeps it until the poll ends; each task imports
it, so that rows which are read again are the same. psycopg reads, as in the other jobs that query
the source: a task checks the server's certificate with the authorities of the driver's DSN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import DataFrame, SparkSession

from cdclake.errors import InputError, TableError
from cdclake.jobs.poll.row_reader import RowReader
from cdclake.jobs.runtime.source import Connection, connect
from cdclake.jobs.stream.changelog_columns import arrow_type
from cdclake.plan import Table
from cdclake.polling import Polling
from cdclake.postgres import bulk_read, poll_queries
from cdclake.postgres.admission import check_polled
from cdclake.postgres.bulk_read import value_name
from cdclake.postgres.event_values import is_json
from cdclake.postgres.source import read_catalog

_SLOT = 1 << 34  # offsets of a poll: above those of all its rows


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLogin:
    """Access to the source; the DSN may name a file with authorities on this machine."""

    dsn: str
    salt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledSnapshot:
    """The source at one time, of which every evaluation reads the same rows."""

    spark: SparkSession
    login: SourceLogin
    name: str
    lsn: int  # at or after the commit of every transaction that it has
    read_at: int  # microseconds since 1970
    zone: str  # of times without one
    bound: int | None  # no transaction that it lacks began before; None: not known
    connection: Connection

    def rows(self, table: Table, since: int | None) -> DataFrame:
        """Read the rows written since a time in microseconds, or all rows if it is None.

        The columns are `value_name` of each column, and `cdc__row`, which tells the rows apart.
        """
        assert table.polling is not None
        if since is not None:
            changed = poll_queries.changed_since(
                table, table.polling, since, self.read_at, self.zone
            )
            return self._read(table, changed, ["true"])
        chunks = self._chunks(table)
        return self._read(table, poll_queries.rows(table, in_chunks=len(chunks) > 1), chunks)

    def _chunks(self, table: Table) -> Sequence[str]:
        """Return conditions that divide a plain table by its blocks; other relations have one."""
        assert table.polling is not None
        if table.polling.query:
            return ["true"]
        kind = self.connection.execute(
            "SELECT relkind::text FROM pg_class WHERE oid = %s::regclass",
            (poll_queries.relation(table),),
        ).fetchone()
        if kind is None or kind[0] not in "rp":
            return ["true"]
        found = self.connection.execute(bulk_read.blocks(table)).fetchone()
        return bulk_read.chunks(int(found[0] if found else 0))

    def _read(self, table: Table, query: str, conditions: Sequence[str]) -> DataFrame:
        reader = RowReader(
            dsn=self.login.dsn,
            authorities=_authorities(self.login.dsn),
            salt=self.login.salt,
            snapshot=self.name,
            query=query,
            types=tuple(
                arrow_type("string" if is_json(c.column_type) else c.column_type.log)
                for c in table.columns
            ),
        )
        parts = self.spark.createDataFrame(list(enumerate(conditions)), "chunk int, which string")
        names = [*(value_name(i) for i, _ in enumerate(table.columns)), "cdc__row"]
        spelled = [
            *("string" if is_json(c.column_type) else c.column_type.log for c in table.columns),
            "bigint",
        ]
        schema = ", ".join(f"{n} {kind}" for n, kind in zip(names, spelled, strict=True))
        return parts.repartition(len(conditions), "chunk").mapInArrow(reader.read, schema)


@contextmanager
def polled_snapshot(
    spark: SparkSession, login: SourceLogin, table: Table
) -> Iterator[PolledSnapshot]:
    """Take a snapshot of the source, and keep it inside the block.

    Raises TableError if the source has other columns or types than the declared ones, or if the
    login may not see what other sessions do, on which a poll depends.
    """
    assert table.polling is not None
    with connect(login.dsn) as connection:
        _check_declared(connection, table, table.polling)
        bound = _bound(connection, table, table.polling)
        zone = str(_row(connection, "SELECT current_setting('TimeZone')")[0])
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            name, read_at = _row(connection, poll_queries.SNAPSHOT)
            # After the snapshot: no transaction in it has a greater one.
            lsn = int(_row(connection, poll_queries.LSN)[0])
            yield PolledSnapshot(
                spark=spark, login=login, name=name, lsn=lsn, read_at=read_at,
                zone=zone, bound=bound, connection=connection,
            )  # fmt: skip


def _check_declared(connection: Connection, table: Table, polling: Polling) -> None:
    """Refuse a source that was altered since `up`; the types of a query are not known."""
    if polling.query:
        return
    name = (table.schema, table.table)
    actual = {found.id: found for found in read_catalog(connection, tables={name})}
    refusals = check_polled(table, actual.get(name), ())
    if refusals:
        raise TableError(
            table.name,
            "; ".join(map(str, refusals)),
            "; ".join(refusal.remedy for refusal in refusals),
        )


def _bound(connection: Connection, table: Table, polling: Polling) -> int | None:
    """Return the time before which no transaction that is still unseen began.

    It is read before the snapshot, so that a transaction which commits in between counts as unseen.
    """
    is_replica, sees_sessions = _row(connection, poll_queries.SESSION)
    minutes = polling.overlap_minutes
    if minutes is None and is_replica:
        minutes = poll_queries.DEFAULT_OVERLAP_MINUTES
    if minutes is not None:
        found = _row(connection, poll_queries.overlapping(minutes))[0]
        return None if found is None else int(found)
    if not sees_sessions:
        user = conninfo_to_dict(connection.info.dsn).get("user", connection.info.user)
        raise TableError(
            table.name,
            f"the role {user} cannot see when the transactions of other sessions began",
            f'run in the source `GRANT pg_read_all_stats TO "{user}";`, or write'
            " `overlap_minutes:` under `poll:` with the longest that a transaction may last",
        )
    oldest = int(_row(connection, poll_queries.TRANSACTIONS)[0])
    prepared = int(_row(connection, poll_queries.PREPARED)[0])
    return None if prepared else oldest


def _row(connection: Connection, query: str) -> tuple[Any, ...]:
    try:
        found = connection.execute(query.encode()).fetchone()
    except psycopg.Error as error:
        raise InputError(
            f"the source refused a poll: {error.diag.message_primary or error}",
            "grant what is missing, or see the job's log",
        ) from None
    assert found is not None  # each of these queries returns one row
    return found


def _authorities(dsn: str) -> str:
    """Return the certificates that the DSN trusts, since a task cannot read the driver's file."""
    file = conninfo_to_dict(dsn).get("sslrootcert")
    return Path(str(file)).read_text() if file and file != "system" else ""


def first_offset(slot: int) -> int:
    """Return the offset of the first row of the poll with this slot."""
    return slot * _SLOT
