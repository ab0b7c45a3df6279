"""The views `<t>_current` and `<t>_history`, from one template for every dialect."""

from __future__ import annotations

from dataclasses import dataclass

from cdclake import naming
from cdclake.debezium.position import history_part as history_of
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import Dialect
from cdclake.iceberg.event_identity import events_once
from cdclake.iceberg.key_changes import completed_changes, lacks_values
from cdclake.iceberg.latest_row import (
    CREATED_AT,
    Carried,
    floor_of_log,
    folded_rows,
    history_part,
    value_position,
)
from cdclake.plan import Column, Table

# Columns of the history view before the values.
HISTORY_FACTS = (
    naming.OP,
    naming.COMMITTED_AT,
    naming.TX_ID,
    naming.POSITION,
    naming.UNAVAILABLE,
    naming.PARTITION,
    naming.OFFSET,
    naming.INGESTED_AT,
    naming.EPOCH,
    naming.LSN,
    naming.PREV_COMMIT_LSN,
    naming.PHASE,
)
# Value of `AppliedThrough.ingested` before the first event.
BEFORE_ALL = -1
# A floor has the length of a position without its offset: comparing the whole position is the same.
_KEPT = f"{naming.POSITION} >= (SELECT floor FROM truncated)"
PENDING = f"SELECT * FROM tail WHERE {naming.OP} <> 't' AND {_KEPT}"
_FOLDED_IS_NEWER = f"f.{naming.POSITION} > s.{naming.POSITION}"


@dataclass(frozen=True, slots=True)
class AppliedThrough:
    """Changes that the state provably contains: all ingested up to `ingested` (µs since 1970).

    `floor` is the greatest applied truncate, without its offset; both are literals in the view.
    `carried` names the columns with an unavailable value in any applied change: only those can have
    a value that is older than its row. No row has, or ever had, a position above `newest`.

    For a changelog that Firehose writes, `ingested` proves nothing, since a later commit may
    contain earlier rows: the state contains everything that was committed up to Iceberg's sequence
    number `sequence`. The creator of a view then passes as `ingested` a lower bound of the
    ingestion of all later commits.

    `rebuilt` is the id of the state's last rebuild, which may have changed any row.
    """

    ingested: int = 0
    floor: str = ""
    carried: tuple[str, ...] = ()
    newest: str = ""
    sequence: int = 0
    rebuilt: str = ""

    def lacked(self, table: Table) -> bool:
        """Check whether an applied event may have lacked a value; soft deletes carry the others."""
        return not {*table.may_be_unsent}.isdisjoint(self.carried)


def current_view(
    table: Table, *, state: str, changes: str, applied: AppliedThrough, dialect: Dialect
) -> str:
    """Return a SELECT of the live rows with exactly the declared columns.

    It is the state, overlaid by the changes ingested since: as fresh as the changelog, however much
    of it has been applied. `state` and `changes` are the relations to read. The tail is bounded by
    ingestion, never by position, since an event may arrive late.
    """
    in_tail = tail_condition(table, changes, applied, dialect)
    pending = PENDING
    if waiting := _waiting_creations(table, applied, changes, dialect):
        pending += f" UNION ALL {waiting} AND {_KEPT}"
    completed = completed_changes(table, pending=pending, changes=changes, dialect=dialect)
    return (
        f"WITH tail AS (SELECT * FROM {changes} WHERE {in_tail}),\n"
        f"truncated AS ({floor_of_log('tail', applied.floor, dialect)}),\n"
        f"{completed},\n"
        f"folded AS ({folded_rows(table, 'completed', table.toastable, dialect)})\n"
        f"{overlaid_state(table, state, dialect)}"
    )


def overlaid_state(
    table: Table,
    state: str,
    dialect: Dialect,
    *,
    folded: str = "folded",
    kept: str = _KEPT,
    carried: Carried | None = None,
) -> str:
    """Return a SELECT of the live rows: `state`, overlaid by `folded`.

    `folded` has the tail's newest row of each key, from `folded_rows` with the same `carried`
    columns (None: the table's toastable ones). `kept` is a condition for the rows of the state that
    the tail does not truncate ("": all); by default it reads the `floor` of `truncated`. Not a full
    outer join: through it, engines pass no predicate on the key down to the state. The second part
    reads the state's keys only, and what `kept` needs.
    """
    name = dialect.name
    keys = " AND ".join(
        dialect.same_key(f"s.{name(key.name)}", f"f.{name(key.name)}", key.column_type.state)
        for key in table.key_columns
    )
    carried = table.toastable if carried is None else carried
    stored = ", ".join(
        f"{_overlaid(table, column, carried, dialect)} AS {name(column.name)}"
        for column in table.columns
    )
    new = ", ".join(f"f.{name(c.name)} AS {name(c.name)}" for c in table.columns)
    rows = f"(SELECT * FROM {state} WHERE {kept}) AS s" if kept else f"{state} AS s"
    return (
        f"SELECT {stored}\nFROM {rows} LEFT JOIN {folded} AS f ON {keys}\n"
        f"WHERE NOT (CASE WHEN {_FOLDED_IS_NEWER} THEN f.{naming.DELETED} "
        f"ELSE s.{naming.DELETED} END)\nUNION ALL\n"
        f"SELECT {new}\nFROM {rows} RIGHT JOIN {folded} AS f ON {keys}\n"
        f"WHERE s.{name(table.key[0])} IS NULL AND NOT f.{naming.DELETED}"
    )


def applied_view(table: Table, *, state: str, dialect: Dialect) -> str:
    """Return the SELECT of `current_view` for a state that contains the whole changelog.

    It reads the state alone, so that a query costs what it costs on the state.
    """
    columns = ", ".join(dialect.name(column.name) for column in table.columns)
    return f"SELECT {columns} FROM {state} WHERE NOT {naming.DELETED}"


def ingested_after(applied: AppliedThrough, dialect: Dialect) -> str:
    """Return a condition for the changelog's rows that the state may not contain."""
    return f"{naming.INGESTED_AT} > {dialect.instant(applied.ingested)}"


def tail_condition(table: Table, changes: str, applied: AppliedThrough, dialect: Dialect) -> str:
    """Return a condition for the changelog's rows that overlay the state.

    If events are unordered, an applied creation of a changed key may lack a value that is in the
    tail, so it is completed again.
    """
    late = ingested_after(applied, dialect)
    if table.delivery != "firehose" or not applied.lacked(table):
        return late
    lowest = f"(SELECT min({naming.LSN}) FROM {changes} WHERE {late})"
    return f"{late} OR ({lacks_values()} AND {naming.LSN} >= {lowest})"


def is_late(table: Table, applied: AppliedThrough, dialect: Dialect) -> str:
    """Return a condition: an applied creation may lack a value of this event; "" if none can.

    A late event precedes an applied one: it comes from another Kafka partition or from quarantine.
    """
    if table.delivery == "firehose" or not applied.lacked(table):
        return ""
    newest = dialect.text(history_of(applied.newest))  # the two events of a pair differ by offset
    return f"{history_part(naming.POSITION)} <= {newest}"


def _waiting_creations(
    table: Table, applied: AppliedThrough, changes: str, dialect: Dialect
) -> str:
    """Return a SELECT of applied creations that late events of the tail complete; "" if none can.

    Engines read only the creations' facts before they know that there are any.
    """
    late = is_late(table, applied, dialect)
    if not late:
        return ""
    lowest = (
        f"SELECT min({naming.LSN}) AS __lowest FROM tail "
        f"WHERE {late} HAVING count({naming.LSN}) > 0"
    )
    waiting = (
        f"SELECT /*+ BROADCAST(late) */ e.{naming.POSITION} FROM {changes} AS e "
        f"JOIN ({lowest}) AS late ON CASE WHEN {lacks_values('e.')} "
        f"AND e.{naming.INGESTED_AT} <= {dialect.instant(applied.ingested)} "
        f"THEN e.{naming.LSN} END >= late.__lowest"
    )
    return f"SELECT * FROM {changes} WHERE {naming.POSITION} IN ({waiting})"


def history_view(table: Table, *, changes: str, dialect: Dialect) -> str:
    """Return a SELECT of the changelog with the state's types; one row per event."""
    columns = [
        f"{to_state(dialect.name(c.name), c.column_type, dialect)} AS {dialect.name(c.name)}"
        for c in table.columns
    ]
    events = history_events(table, changes, dialect)
    return f"SELECT {', '.join([*HISTORY_FACTS, *columns])}\nFROM {events}"


def history_events(table: Table, changes: str, dialect: Dialect) -> str:
    """Return a relation with one row per event; only Firehose may append an event twice."""
    if table.delivery != "firehose":
        return changes
    return f"{events_once(table, changes, dialect)} AS events"


def _overlaid(table: Table, column: Column, carried: Carried, dialect: Dialect) -> str:
    name = dialect.name(column.name)
    if column.name in table.key:
        return f"s.{name}"
    newer = _FOLDED_IS_NEWER
    if column.name in carried:
        stored = dialect.value_in(f"s.{naming.VALUE_POSITIONS}", column.name)
        stored = f"coalesce({stored}, s.{naming.POSITION})"
        # Equal: the same event, which a late one may have completed again.
        newer = f"coalesce(f.{value_position(carried, column.name)}, '') >= {stored}"
        # The stored value is of an earlier row of the key.
        newer = f"{newer} OR f.{CREATED_AT} > {stored}"
    return f"CASE WHEN {newer} THEN f.{name} ELSE s.{name} END"
