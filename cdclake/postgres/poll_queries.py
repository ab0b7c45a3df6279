"""SQL of polls: the time from which rows are read again, a snapshot's LSN, and its rows.

A transaction sets `by` to now(), its start, and its rows become visible when it commits. So a poll
reads all rows of transactions that began since the start of the oldest transaction that the poll
before could not see. A transaction has no id before its first write, so ids would not tell.
"""

from __future__ import annotations

from cdclake.plan import Table
from cdclake.postgres import bulk_read
from cdclake.postgres.quoting import identifier, literal, qualified

DEFAULT_OVERLAP_MINUTES = 15
# A session shows its transaction an instant after its now(): this much is read again.
_SHOWN_AFTER = "interval '10 seconds'"
_MICROS = "(extract(epoch FROM {}) * 1000000)::bigint"

SESSION = "SELECT pg_is_in_recovery(), pg_has_role('pg_read_all_stats', 'USAGE')"

# A session with `track_activities = off` has no `xact_start`, nor has one that turned it on again
# within a transaction. PostgreSQL sets `xact_start` before these ids, and clears it after them.
_HIDDEN = (
    "xact_start IS NULL AND (state = 'disabled' OR state LIKE 'idle in transaction%'"
    " OR backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)"
)

# NULL if a session may hide a transaction. Prepared transactions have no session, and nothing says
# when they began. A session that prepares its transaction between the two queries is in the first
# one.
TRANSACTIONS = (
    f"SELECT CASE WHEN NOT coalesce(bool_or({_HIDDEN}), false) THEN "
    + _MICROS.format(f"least(clock_timestamp(), min(xact_start)) - {_SHOWN_AFTER}")
    + " END FROM pg_stat_activity WHERE datname = current_database()"
)
PREPARED = "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()"

SNAPSHOT = f"SELECT pg_export_snapshot(), {_MICROS.format('clock_timestamp()')}"
LSN = (
    "SELECT ((CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()"
    " ELSE pg_current_wal_insert_lsn() END) - '0/0'::pg_lsn)::bigint"
)


NOW = "clock_timestamp()"
REPLAYED = "pg_last_xact_replay_timestamp()"  # a replica's last commit


def overlapping(minutes: int, before: str) -> str:
    """Return a SELECT of where the next poll begins: some minutes earlier than the time `before`.

    It is NULL if a replica has replayed no commit.
    """
    return f"SELECT {_MICROS.format(f'{before} - make_interval(mins => {minutes:d})')}"


def relation(table: Table) -> str:
    """Return what a table's rows are read from: the table, or its query in parentheses."""
    if table.is_query:
        return f"({table.poll.query}\n) AS polled"
    return qualified(table.schema, table.table)


def search_path(table: Table, *, is_local: bool = True) -> str:
    """Return the statement that sets the search path with which `relation` is read.

    A query has the login's path, as in its other sessions, so that the operators are the same: with
    pg_catalog alone `=` of two citext columns would be that of text. The pipeline's role has that
    of the login that prepared the source (`query_schemas`). pg_catalog comes first, for our
    expressions around the query. Functions that a query calls read the path, too.
    """
    if not table.is_query:
        return f"SET{' LOCAL' if is_local else ''} search_path = pg_catalog"
    return (
        "SELECT set_config(name, concat_ws(', ', 'pg_catalog', nullif(reset_val, '')),"
        f" {'true' if is_local else 'false'}) FROM pg_settings WHERE name = 'search_path'"
    )


def no_rows(table: Table) -> str:
    """Return a SELECT whose result has the columns of what is read, and no rows; it reads none."""
    return f"SELECT * FROM {relation(table)} WHERE false"


def lock_against_rewrites(table: Table) -> str:
    """Return a query that reads nothing, but locks what it reads until its transaction ends.

    PostgreSQL also locks the relations of a view or query. No writer is blocked.
    """
    return f"SELECT FROM {relation(table)} LIMIT 0"


def rows(table: Table) -> str:
    """Return a SELECT of every row in the changelog's form."""
    return f"SELECT {', '.join(bulk_read.values(table))} FROM {relation(table)}"


def changed_since(table: Table, bound: int, read_at: int, zone: str) -> str:
    """Return the SELECT of `rows` for those written since `bound` (microseconds since 1970).

    A column without time zone holds the time of `zone`, the server's, which may have set its clocks
    back between `bound` and `read_at`.
    """
    column = next(c for c in table.columns if c.name == table.poll.by)
    by, since = identifier(column.source), f"to_timestamp({bound} / 1000000.0)"
    if column.column_type.base == "timestamp":
        now, at = f"to_timestamp({read_at} / 1000000.0)", f"AT TIME ZONE {literal(zone)}"
        utc = "AT TIME ZONE 'UTC'"
        since = f"least({since} {at}, {since} {utc} + ({now} {at} - {now} {utc}))"
    return f"{rows(table)} WHERE {by} >= {since} OR {by} IS NULL"
