"""Snapshot of the source for one poll, and the rows that Spark's tasks read from it.

The driver's transaction exports its snapshot and keeps it until the poll has its rows; each task
imports it, so that rows which are read again are the same. psycopg reads, as in the other jobs that
query the source: a task checks the server's certificate with the authorities of the driver's DSN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import DataFrame, SparkSession

from cdclake.errors import InputError, TableError
from cdclake.jobs.poll.row_reader import RowReader, waits_reported
from cdclake.jobs.runtime.source import Connection, connect
from cdclake.jobs.stream.changelog_columns import arrow_type
from cdclake.masks import SALTED
from cdclake.plan import Table
from cdclake.postgres import bulk_read, poll_queries
from cdclake.postgres.admission import check_polled
from cdclake.postgres.bulk_read import value_name
from cdclake.postgres.catalog import SourceTable
from cdclake.postgres.event_values import NO_TIMEOUTS, is_json
from cdclake.postgres.polled_sources import check_foreign, check_query
from cdclake.postgres.prepare import KINDS_OF_TABLES
from cdclake.postgres.published import as_named_now
from cdclake.postgres.source import read_catalog

# Before PostgreSQL 14 the condition of each chunk is a scan of the whole table.
_HAS_TID_RANGE_SCANS = 140000


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
    table: Table  # with the columns' current names
    name: str
    lsn: int  # at or after the commit of every transaction that it has; 0: not known
    primary_lsn: int  # 0 on a replica: each replica behind an address has another LSN
    read_at: int  # microseconds since 1970
    zone: str  # of times without one
    bound: int | None  # no transaction that it lacks began before; None: not known
    has_blocks: bool  # the rows are those of a table that is read in chunks
    locks: Connection  # keeps what is read from being rewritten
    sessions: ExitStack  # ends the sessions with the snapshot and the locks

    def rows(self, since: int | None) -> DataFrame:
        """Read the rows written since a time in microseconds, or all rows if it is None.

        The columns are `value_name` of each column.
        """
        table = self.table
        if since is not None:
            changed = poll_queries.changed_since(table, since, self.read_at, self.zone)
            return self._read(changed, ["true"])
        if not self.has_blocks:
            return self._read(poll_queries.rows(table), ["true"])
        [blocks] = _row(self.locks, bulk_read.blocks(table))
        return self._read(bulk_read.rows(table), bulk_read.chunks(int(blocks)))

    def end(self) -> None:
        """Release the source when all rows have been read and cached.

        Raises InputError if tables may have been rewritten meanwhile. The snapshot ends with the
        locks: rows of a cache that is lost would be read again, perhaps of a table that is empty by
        then. Without the snapshot such a read fails, and so does the poll.
        """
        self.locks.execute("SELECT 1")
        self.sessions.close()

    def _read(self, query: str, conditions: Sequence[str]) -> DataFrame:
        types = [column.column_type for column in self.table.columns]
        kinds = ["string" if is_json(each) else each.log for each in types]
        reader = RowReader(
            dsn=self.login.dsn,
            authorities=_authorities(self.login.dsn),
            salt=self.login.salt if any(each.mask in SALTED for each in self.table.columns) else "",
            snapshot=self.name,
            search_path=poll_queries.search_path(self.table),
            query=query,
            types=tuple(map(arrow_type, kinds)),
        )
        schema = ", ".join(f"{value_name(index)} {kind}" for index, kind in enumerate(kinds))
        parts = self.spark.createDataFrame([(each,) for each in conditions], "condition string")
        return parts.repartition(len(conditions)).mapInArrow(reader.read, schema)


@contextmanager
def polled_snapshot(
    spark: SparkSession, login: SourceLogin, table: Table, *, needs_lsn: bool
) -> Iterator[PolledSnapshot]:
    """Take a snapshot of the source, and keep it inside the block or until its `end`.

    Raises TableError if the source has other columns or types than the declared ones, or if the
    login may not see what other sessions do, on which a poll depends; InputError if the LSN is
    needed and the source does not name it.
    """
    with ExitStack() as sessions:
        connection = sessions.enter_context(_idle_session(login.dsn))
        locks = sessions.enter_context(_locked(login.dsn, table))
        connection.execute(bulk_read.LIMIT_WAITS)
        actual = _relation(connection, table)
        is_replica, sees_sessions = _row(connection, poll_queries.SESSION)
        bound = _bound(connection, table, is_replica=is_replica, sees_sessions=sees_sessions)
        zone = str(_row(connection, "SELECT current_setting('TimeZone')")[0])
        sessions.enter_context(connection.transaction())
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        name, read_at = _row(connection, poll_queries.SNAPSHOT)
        # Read after the snapshot, so that no transaction in the snapshot has a greater LSN.
        lsn = _lsn(connection, is_needed=needs_lsn)
        yield PolledSnapshot(
            spark=spark,
            login=login,
            table=table if actual is None else as_named_now(table, actual.by_name),
            name=name,
            lsn=lsn,
            primary_lsn=0 if is_replica else lsn,
            read_at=read_at,
            zone=zone,
            bound=bound,
            has_blocks=actual is not None
            and actual.kind in KINDS_OF_TABLES
            and connection.info.server_version >= _HAS_TID_RANGE_SCANS,
            locks=locks,
            sessions=sessions,
        )


@contextmanager
def _locked(dsn: str, table: Table) -> Iterator[Connection]:
    """Keep what the table reads from being rewritten or emptied, inside the block.

    A snapshot from before such a statement sees no row after it. The session is not the one with
    the snapshot, which would be taken before the lock.
    """
    with _idle_session(dsn) as locks:
        _relation(locks, table)  # refuses a missing table with its remedy
        with locks.transaction():
            _execute(locks, poll_queries.search_path(table))
            _execute(locks, poll_queries.lock_against_rewrites(table))
            yield locks


@contextmanager
def _idle_session(dsn: str) -> Iterator[Connection]:
    """Open a session that the server does not end while it waits in its transaction."""
    with connect(dsn) as connection:
        for setting in NO_TIMEOUTS:
            connection.execute(setting)
        yield connection


def _relation(connection: Connection, table: Table) -> SourceTable | None:
    """Return the table or view that is read, None for a query; refuse what was altered."""
    name = (table.schema, table.table)
    actual: SourceTable | None = None
    with _errors_reported(connection):
        refusals = check_foreign(connection, table)
        if table.is_query:
            refusals += check_query(connection, table)
        else:
            found = {each.id: each for each in read_catalog(connection, tables={name})}
            actual = found.get(name)
            refusals += check_polled(table, actual, ())
    if refusals:
        raise TableError(
            table.name,
            "; ".join(map(str, refusals)),
            "; ".join(refusal.remedy for refusal in refusals),
        )
    return actual


def _bound(
    connection: Connection, table: Table, *, is_replica: bool, sees_sessions: bool
) -> int | None:
    """Return the time before which no transaction that is still unseen began.

    It is read before the snapshot, so that a transaction which commits in between counts as unseen.
    """
    minutes = table.poll.overlap_minutes
    if minutes is None and is_replica:
        minutes = poll_queries.DEFAULT_OVERLAP_MINUTES
    if minutes is not None:
        now = _newest_commit(connection, table) if is_replica else poll_queries.NOW
        found = _row(connection, poll_queries.overlapping(minutes, now))[0]
        return None if found is None else int(found)
    if not sees_sessions:
        user = conninfo_to_dict(connection.info.dsn).get("user", connection.info.user)
        raise TableError(
            table.name,
            f"the role {user} cannot see when the transactions of other sessions began",
            f'run in the source `GRANT pg_read_all_stats TO "{user}";`, or write'
            " `overlap_minutes:` under `poll:` with the longest that a transaction may last",
        )
    [oldest] = _row(connection, poll_queries.TRANSACTIONS)
    [prepared] = _row(connection, poll_queries.PREPARED)
    return None if prepared or oldest is None else int(oldest)


def _newest_commit(connection: Connection, table: Table) -> str:
    """Return the SQL of the time of the newest commit that a replica has.

    A reader of Aurora does not report it. There the declared minutes count from now.
    """
    with _errors_reported(connection):
        try:
            connection.execute(f"SELECT {poll_queries.REPLAYED}".encode())
        except errors.FeatureNotSupported:
            if table.poll.overlap_minutes is None and table.poll.reads_changes:
                raise TableError(
                    table.name,
                    "the replica does not report its last commit, as readers of Aurora",
                    "write `overlap_minutes:` under `poll:` with the longest that a transaction"
                    " may last and the replica may be behind, together",
                ) from None
            return poll_queries.NOW
    return poll_queries.REPLAYED


def _lsn(connection: Connection, *, is_needed: bool) -> int:
    """Return an LSN at or after each commit in the snapshot; 0 if the source does not name one.

    Aurora names none on a reader, nor on a writer without logical replication. Only events
    from the WAL that may still come have LSNs with which that of a poll is compared.
    """
    with _errors_reported(connection):
        try:
            with connection.transaction():  # a savepoint: an error would end the snapshot
                found = connection.execute(poll_queries.LSN.encode()).fetchone()
        except (errors.FeatureNotSupported, errors.ObjectNotInPrerequisiteState):
            if is_needed:
                raise
            return 0
    assert found is not None
    return int(found[0])


def _row(connection: Connection, query: str) -> tuple[Any, ...]:
    found = _execute(connection, query).fetchone()
    assert found is not None  # each of these queries returns one row
    return found


def _execute(connection: Connection, query: str) -> psycopg.Cursor[tuple[Any, ...]]:
    with _errors_reported(connection):
        return connection.execute(query.encode())


@contextmanager
def _errors_reported(connection: Connection) -> Iterator[None]:
    """Report an error of the source as one of the table that is polled, so that others are read.

    `connect` reports a connection that broke.
    """
    try:
        with waits_reported():
            yield
    except psycopg.Error as error:
        if connection.broken:
            raise
        raise InputError(
            f"the source refused a poll: {error.diag.message_primary or error}",
            "grant what is missing, or see the job's log",
        ) from None


def _authorities(dsn: str) -> str:
    """Return the certificates that the DSN trusts, since a task cannot read the driver's file."""
    file = conninfo_to_dict(dsn).get("sslrootcert")
    return Path(str(file)).read_text() if file and file != "system" else ""
