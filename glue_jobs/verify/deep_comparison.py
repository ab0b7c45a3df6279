"""`verify --deep`: compare a table's state, changelog and history with each other.

Comparing `<t>_current` with the source does not prove `<t>`: its newest rows come from the
changelog, and hide a wrong state. Here the state is compared with the rows that the changelog
gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb

from cdclake import naming
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.event_identity import event_identity
from cdclake.iceberg.latest_row import value_position
from cdclake.jobs.reader.row_counts import row_count
from cdclake.naming import history_name, rebuilt_name
from cdclake.plan import Table

MAX_EXAMPLES = 10
_FOUND = "cdc__deep_found"
# Its columns next to the key's, which may have any name without our prefix.
_KIND, _COLUMNS, _POSITION = "cdc__kind", "cdc__columns", "cdc__position"
_KINDS = (
    "missing",
    "extra",
    "different",
    "doubled_rows",
    "doubled_events",
    "history_missing",
    "history_different",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Example of a difference: the key, and the columns that differ."""

    key: Mapping[str, str | None]
    kind: str
    columns: list[str]
    position: str | None  # of the event in question


@dataclass(slots=True, kw_only=True)
class DeepComparison:
    """Number of differences between the parts of one table in the lake, by kind."""

    rebuilt_rows: int = 0  # rows that the changelog gives
    missing: int = 0  # rows that the changelog gives and `<t>` lacks
    extra: int = 0  # rows of `<t>` that no event in the changelog accounts for
    different: int = 0
    doubled_rows: int = 0  # keys that `<t>` has more than once
    doubled_events: int = 0  # events that the changelog has more than once
    history_missing: int = 0  # rows of `<t>` whose newest event is not in `<t>_history`
    history_different: int = 0
    first: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True if nothing differs."""
        return not any(getattr(self, kind) for kind in _KINDS)


def compare_deep(session: duckdb.DuckDBPyConnection, table: Table) -> DeepComparison:
    """Compare the parts of one table, in a session of `Reader.open` with `rebuilt`."""
    found = DeepComparison(rebuilt_rows=row_count(session, rebuilt_name(table.name)))
    for query in (
        _rebuilt_differences(table),
        _doubled_rows(table),
        *([_doubled_events(table)] if table.delivery != "firehose" else []),
        _history_differences(table),
    ):
        session.execute(f"CREATE OR REPLACE TEMP TABLE {_FOUND} AS {query}")
        for kind, count in session.execute(
            f"SELECT {_KIND}, count(*) FROM temp.main.{_FOUND} GROUP BY 1"
        ).fetchall():
            setattr(found, kind, count)
        found.first += _examples(session, table, MAX_EXAMPLES - len(found.first))
    return found


def _rebuilt_differences(table: Table) -> str:
    """Return a SELECT of the live rows that differ between the state and the changelog."""
    compared = {
        column.name: _differs(column.name, table.toastable) for column in table.value_columns
    }
    compared[naming.POSITION] = _are_distinct(naming.POSITION)
    missing, extra = (f"{side}.{naming.POSITION} IS NULL" for side in ("s", "r"))
    kind = f"CASE WHEN {missing} THEN 'missing' WHEN {extra} THEN 'extra' ELSE 'different' END"
    where = " OR ".join([missing, extra, *compared.values()])
    position = f"coalesce(s.{naming.POSITION}, r.{naming.POSITION})"
    return (
        f"SELECT {kind} AS {_KIND}, {_listed(compared)} AS {_COLUMNS}, {position} AS {_POSITION},"
        f" {_coalesced_key(table, 's', 'r')}\n"
        f"FROM {_live(table)} AS s FULL OUTER JOIN {DUCKDB.name(rebuilt_name(table.name))} AS r"
        f" ON {_same_key(table, 's', 'r')}\nWHERE {where}"
    )


def _differs(column: str, carried: tuple[str, ...]) -> str:
    """Return a condition that excludes values that no event in the changelog has."""
    differs = _are_distinct(column)
    if column not in carried:
        return differs
    return f"({differs} AND r.{value_position(carried, column)} IS NOT NULL)"


def _doubled_rows(table: Table) -> str:
    keys = ", ".join(DUCKDB.name(name) for name in table.key)
    return (
        f"SELECT 'doubled_rows' AS {_KIND}, []::VARCHAR[] AS {_COLUMNS},"
        f" max({naming.POSITION}) AS {_POSITION}, {keys}\n"
        f"FROM {DUCKDB.name(table.name)} GROUP BY {keys} HAVING count(*) > 1"
    )


def _doubled_events(table: Table) -> str:
    """Return a SELECT of the events that the changelog has twice, without the job's own events.

    Firehose may append an event twice, which its readers expect.
    """
    keys = ", ".join(DUCKDB.name(name) for name in table.key)
    return (
        f"SELECT 'doubled_events' AS {_KIND}, []::VARCHAR[] AS {_COLUMNS},"
        f" max({naming.POSITION}) AS {_POSITION}, {keys}\n"
        f"FROM {DUCKDB.name(table.changes)} WHERE {naming.PARTITION} >= 0"
        f" GROUP BY {event_identity(table, DUCKDB)} HAVING count(*) > 1"
    )


def _history_differences(table: Table) -> str:
    """Return a SELECT of the live rows whose newest event the history lacks or shows otherwise."""
    compared = {
        column.name: f"({_are_distinct(column.name)} AND (r.{naming.UNAVAILABLE} IS NULL"
        f" OR NOT {DUCKDB.contains(f'r.{naming.UNAVAILABLE}', column.name)}))"
        for column in table.value_columns
    }
    missing = f"r.{naming.POSITION} IS NULL"
    kind = f"CASE WHEN {missing} THEN 'history_missing' ELSE 'history_different' END"
    where = " OR ".join([missing, *compared.values()])
    keys = ", ".join(f"s.{DUCKDB.name(name)}" for name in table.key)
    return (
        f"SELECT DISTINCT {kind} AS {_KIND}, {_listed(compared)} AS {_COLUMNS},"
        f" s.{naming.POSITION} AS {_POSITION}, {keys}\n"
        f"FROM {_live(table)} AS s LEFT JOIN {DUCKDB.name(history_name(table.name))} AS r"
        f" ON r.{naming.POSITION} = s.{naming.POSITION} AND {_same_key(table, 's', 'r')}\n"
        f"WHERE {where}"
    )


def _live(table: Table) -> str:
    return f"(SELECT * FROM {DUCKDB.name(table.name)} WHERE NOT {naming.DELETED})"


def _are_distinct(column: str) -> str:
    name = DUCKDB.name(column)
    return f"s.{name} IS DISTINCT FROM r.{name}"


def _listed(compared: Mapping[str, str]) -> str:
    named = ", ".join(
        f"CASE WHEN {differs} THEN {DUCKDB.text(name)} END" for name, differs in compared.items()
    )
    return f"list_filter([{named}], lambda name: name IS NOT NULL)"


def _same_key(table: Table, left: str, right: str) -> str:
    names = [DUCKDB.name(name) for name in table.key]
    return " AND ".join(f"{left}.{name} = {right}.{name}" for name in names)


def _coalesced_key(table: Table, left: str, right: str) -> str:
    names = [DUCKDB.name(name) for name in table.key]
    return ", ".join(f"coalesce({left}.{name}, {right}.{name}) AS {name}" for name in names)


def _examples(session: duckdb.DuckDBPyConnection, table: Table, limit: int) -> list[Finding]:
    keys = ", ".join(f"{DUCKDB.name(name)}::VARCHAR" for name in table.key)
    rows = session.execute(
        f"SELECT {_KIND}, {_COLUMNS}, {_POSITION}, {keys} FROM temp.main.{_FOUND}"
        f" ORDER BY ALL LIMIT {limit}"
    ).fetchall()
    return [_finding(table, *row) for row in rows]


def _finding(
    table: Table, kind: str, columns: list[str], position: str | None, *key: Any
) -> Finding:
    return Finding(
        key=dict(zip(table.key, key, strict=True)),
        kind=kind,
        columns=columns if kind.endswith("different") else [],
        position=position,
    )
