"""The live rows as of any commit time, from the changelog alone."""

from __future__ import annotations

from cdclake import naming
from cdclake.debezium.position import POLL_PHASE, SNAPSHOT_PHASE
from cdclake.iceberg.dialect import Dialect
from cdclake.iceberg.key_values import key_values
from cdclake.iceberg.latest_row import history_part
from cdclake.iceberg.rebuilt_view import rebuilt_view
from cdclake.plan import Table

_IS_READ = f"{naming.OP} = 'r' AND {naming.PHASE} = {SNAPSHOT_PHASE}"
# A row of an incremental snapshot, as of a resync, has a previous commit.
_IS_INITIAL = f"{_IS_READ} AND {naming.PREV_COMMIT_LSN} = 0"


def committed_through(changes: str, moment: str) -> str:
    """Return a SELECT of the changelog's events that had been committed at `moment`, an SQL text.

    >>> committed_through("t_changes", "now()")
    'SELECT * FROM t_changes WHERE cdc_committed_at <= now()'
    """
    return f"SELECT * FROM {changes} WHERE {naming.COMMITTED_AT} <= {moment}"


def as_of_view(
    table: Table, *, changes: str, moment: str, dialect: Dialect, floor: str = ""
) -> str:
    """Return a SELECT of the declared columns of the rows that lived at that time.

    `moment` is an SQL text, a time in the source's commit times. Exact from the time of
    `first_complete` on, as long as the changelog keeps every event since; in Trino without the
    values that `completed_changes` looks up elsewhere. `floor` is that of the snapshots read until
    then, if the changelog has no sweeps.
    """
    log = committed_through(changes, moment)
    rows = rebuilt_view(table, changes=log, floor=floor, dialect=dialect)
    columns = ", ".join(dialect.name(column.name) for column in table.columns)
    return f"SELECT {columns} FROM ({rows}) AS rebuilt"


def first_complete(table: Table, *, changes: str, dialect: Dialect) -> str:
    """Return a SELECT of the time since which the changelog has every row of the source.

    That is when the last row of the first snapshot was read, or when the table was first polled;
    NULL if there was neither. Rows of a later snapshot, as of a resync, do not count.
    """
    key = ", ".join(key_values(table, dialect))
    first_of = f"min_by({{0}}, {naming.POSITION}) AS {{0}}"
    facts = (naming.OP, naming.PHASE, naming.COMMITTED_AT)
    # A resync follows transactions. A table that joined has been read by resyncs alone: its first
    # one reads the rows whose first event it is.
    return (
        f"WITH log AS ({changes}),\n"
        f"epoch AS (SELECT * FROM log WHERE {naming.EPOCH} = (SELECT min({naming.EPOCH})"
        " FROM log)),\n"
        f"firsts AS (SELECT {', '.join(map(first_of.format, facts))} FROM epoch GROUP BY {key})\n"
        "SELECT coalesce(\n"
        f"  (SELECT max({naming.COMMITTED_AT}) FROM epoch"
        f" WHERE {_IS_INITIAL}),\n"
        f"  (SELECT max({naming.COMMITTED_AT}) FROM firsts WHERE {_IS_READ}),\n"
        f"  (SELECT min({naming.COMMITTED_AT}) FROM epoch WHERE {naming.PHASE} = {POLL_PHASE}))"
    )


def epoch_snapshots(changes: str, dialect: Dialect, floor: str) -> str:
    """Return a SELECT of the snapshots after the first epoch's: floor, first and last time.

    The times are those at which rows were read. A table that was empty at the snapshot with
    the `floor` has no row of it: the first event above it then stands in for the snapshot.
    """
    first = f"(SELECT min({naming.EPOCH}) FROM {changes})"
    at = history_part(naming.POSITION)
    known = dialect.text(floor)
    times = f"min({naming.COMMITTED_AT}) AS began, max({naming.COMMITTED_AT}) AS ended"
    return (
        f"SELECT max({at}) AS floor, {times}\nFROM {changes}\n"
        f"WHERE {_IS_INITIAL} AND {naming.EPOCH} > {first} GROUP BY {naming.EPOCH}\nUNION ALL "
        f"SELECT {known}, min({naming.COMMITTED_AT}), min({naming.COMMITTED_AT})\n"
        f"FROM {changes} WHERE {naming.POSITION} >= {known}\n"
        f"HAVING coalesce(max(CASE WHEN {_IS_INITIAL} THEN {at} END), '') < {known}"
    )
