"""Statements that create `<t>_current` and `<t>_history` for Athena and Trino.

A stored view is not renewed by each commit, so `<t>_current` looks up in the state's own metadata
how far the state has been applied. A view in the Glue catalog cannot have a type with a
time zone, so points in time are timestamps in UTC.
"""

from __future__ import annotations

from dataclasses import replace

from cdclake import naming
from cdclake.debezium.types import Conversion
from cdclake.firehose.redrive_stream import lateness_seconds
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import TRINO, in_utc
from cdclake.iceberg.evolution import may_widen
from cdclake.iceberg.latest_row import folded_rows, history_part
from cdclake.iceberg.views import (
    BEFORE_ALL,
    HISTORY_FACTS,
    PENDING,
    history_events,
    overlaid_state,
)
from cdclake.plan import Column, Plan, Table

_TIMESTAMPS = (naming.COMMITTED_AT, naming.INGESTED_AT)
# The stamp may be older than the state that is read, but never newer, even if an engine loads the
# two metadata tables at other times than the state: longer than the clocks differ and a commit
# takes.
STAMP_AGE_S = 120
_STALE_VIEW = (
    "no commit of the state from before this view is known: ask again in two minutes,"
    " then run `cdclake views`"
)
_TYPES = {
    "string": "varchar",
    "int": "integer",
    "float": "real",
    "timestamp": "timestamp(6) with time zone",
    "timestamp_ntz": "timestamp(6)",
}
_FLOOR = "cdc__floor"  # in `tail`: of the truncates that the state contains


def athena_views(table: Table, plan: Plan, since: int | None = None) -> dict[str, str]:
    """Return the statements that create or replace the views, by the view's name.

    `since` is the state's bound of the tail now (`tail_bound`), if it is known.
    """
    selects = {
        naming.current_name(table.name): current_select(table, plan, since),
        naming.history_name(table.name): _history(table, plan.lake_database),
    }
    return {
        name: f"CREATE OR REPLACE VIEW {_relation(plan.lake_database, name)} AS\n{select}"
        for name, select in selects.items()
    }


def tail_bound(table: Table, plan: Plan) -> str:
    """Return a SELECT of the time in microseconds since 1970 after which all the tail arrived."""
    micros = "CAST(floor(to_unixtime(ingested) * 1e6) AS bigint)"
    return f"SELECT {micros} AS ingested FROM ({_stamp(table, plan)})"


def current_select(table: Table, plan: Plan, since: int | None = None) -> str:
    """Return the SELECT of `<t>_current`: the state, overlaid by the changes since its stamp.

    Every engine skips the changelog's files before the literal `since`, when it plans a query. What
    comes before the stamp is left out only as the query runs.

    It does not look up the values that the creation of a changed key lacks, as the other dialects'
    view does: that takes more stages than Trino allows a query. They are NULL until the creation
    is applied.
    """
    database = plan.lake_database
    bound = "" if since is None else f" AND l.{naming.INGESTED_AT} > {TRINO.instant(since)}"
    tail = (
        f"SELECT l.*, b.{_FLOOR} FROM {_relation(database, table.changes)} AS l\n"
        f"CROSS JOIN stamp AS b WHERE l.{naming.INGESTED_AT} > b.ingested{bound}"
    )
    truncate = f"CASE WHEN {naming.OP} = 't' THEN {history_part(naming.POSITION)} ELSE '' END"
    floor = f"SELECT coalesce(max(greatest({_FLOOR}, {truncate})), '') AS floor FROM tail"
    by_event = replace(table, replica_identity="default")  # deletes may have no values
    folded = folded_rows(by_event, f"({PENDING})", table.toastable, TRINO)
    live = overlaid_state(table, _relation(database, table.name), TRINO)
    if since is not None:
        live += f"\nUNION ALL\n{_failure(table, since)}"
    return (
        f"WITH stamp AS ({_stamp(table, plan)}),\n"
        f"tail AS ({tail}),\ntruncated AS ({floor}),\nfolded AS ({folded}),\n"
        f"live AS ({live})\nSELECT {', '.join(map(_shown, table.columns))}\nFROM live"
    )


def _failure(table: Table, since: int) -> str:
    """Return a SELECT of no rows, which fails if the stamp is older than the literal bound.

    The state was then rolled back, or has no older commits: it was created again, or applied after
    days without a change. The message is in every column, so that no predicate removes the part.
    """
    stale = f"if(ingested < {TRINO.instant(since)}, {TRINO.text(_STALE_VIEW)})"
    columns = ", ".join(_cast("message", c.column_type.state) for c in table.columns)
    return (
        f"SELECT {columns}\nFROM (SELECT {stale} AS message FROM stamp)\n"
        "WHERE CAST(message AS boolean)"
    )


def _cast(text: str, kind: str) -> str:
    return f"to_utf8({text})" if kind == "binary" else f"CAST({text} AS {_TYPES.get(kind, kind)})"


def _stamp(table: Table, plan: Plan) -> str:
    """Return a SELECT of the newest stamp of the state that is old enough, in one row.

    Without one, the tail is the whole changelog. After a rollback the metadata still lists the
    abandoned snapshots, whose stamps are newer than the state. Of a changelog that Firehose writes,
    also by a redrive, rows may be committed that much later than others that were ingested after
    them.
    """
    late = lateness_seconds(plan, table) * 1_000_000
    ingested = f"coalesce(max_by({_of_stamp('ingested', 'bigint')}, committed_at), {BEFORE_ALL})"
    floor = f"coalesce(max_by({_of_stamp('floor', 'varchar')}, committed_at), '')"
    snapshots, history = (
        _relation(plan.lake_database, f"{table.name}${of}") for of in ("snapshots", "history")
    )
    return (
        f"SELECT {TRINO.instant(f'{ingested} - {late}')} AS ingested,\n"
        f"  {floor} AS {_FLOOR}\nFROM {snapshots}\n"
        f"WHERE element_at(summary, '{naming.STAMP_PROPERTY}') IS NOT NULL\n"
        f"  AND committed_at <= current_timestamp - interval '{STAMP_AGE_S}' second\n"
        f"  AND snapshot_id IN (SELECT snapshot_id FROM {history} WHERE is_current_ancestor)"
    )


def _of_stamp(field: str, kind: str) -> str:
    stamp = f"element_at(summary, '{naming.STAMP_PROPERTY}')"
    return f"CAST(json_extract_scalar({stamp}, '$.{field}') AS {kind})"


def _history(table: Table, database: str) -> str:
    facts = [_named(in_utc(fact), fact) if fact in _TIMESTAMPS else fact for fact in HISTORY_FACTS]
    listed = ",\n  ".join([*facts, *map(_typed, table.columns)])
    events = history_events(table, _relation(database, table.changes), TRINO)
    return f"SELECT\n  {listed}\nFROM {events}"


def _typed(column: Column) -> str:
    """Return the changelog's value with the state's type; NULL if that type cannot hold it."""
    value = to_state(TRINO.name(column.name), column.column_type, TRINO)
    match column.column_type.conversion:
        case Conversion.TIMESTAMPTZ:
            value = in_utc(value)
        case Conversion.NONE:
            value = _as_stored(value, column)
    return _named(value, column.name)


def _shown(column: Column) -> str:
    name = TRINO.name(column.name)
    is_zoned = column.column_type.conversion is Conversion.TIMESTAMPTZ
    shown = in_utc(name) if is_zoned else _as_stored(name, column)
    return name if shown == name else _named(shown, column.name)


def _as_stored(value: str, column: Column) -> str:
    """Return the value with the column's type in the stored view; NULL if that cannot hold it.

    Otherwise every query of the view would fail as stale once the lake has widened the column.
    While the types are equal Trino drops the cast, so that files are still skipped by the column.
    """
    kind = column.column_type.state
    return f"TRY_CAST({value} AS {_TYPES.get(kind, kind)})" if may_widen(kind) else value


def _named(expression: str, name: str) -> str:
    return f"{expression} AS {TRINO.name(name)}"


def _relation(database: str, name: str) -> str:
    return f"{TRINO.name(database)}.{TRINO.name(name)}"
