"""SQL that lists the rows whose values Athena's and Trino's `<t>_current` cannot look up.

An UPDATE of a key arrives as a delete and a creation. The creation lacks each large value that did
not change, until it is applied: apply looks the value up under the old key.
"""

from __future__ import annotations

from cdclake import naming
from cdclake.debezium.types import Conversion
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import TRINO, Dialect, in_utc
from cdclake.iceberg.key_changes import lacks_values
from cdclake.iceberg.key_values import key_values
from cdclake.plan import Table

_WAITS_FOR = "cdc__waits_for"  # the changelog has no such column


def incomplete_rows(table: Table, *, changes: str, state: str | None, dialect: Dialect) -> str:
    """Return a SELECT of the keys of such rows, each with a column that it waits for.

    `changes` is the changelog, or the part of it that may not be applied yet. Without `state` the
    rows that are applied already are not left out. The text is equally long for any number of
    columns, so that the saved queries of many tables fit into a template.
    """
    position = naming.POSITION
    keys = [dialect.name(key) for key in table.key]
    shown = ", ".join(f"{value} AS {key}" for key, value in shown_keys(table, dialect, "e").items())
    of_event = ", ".join(key_values(table, dialect, "e."))
    same = " AND ".join(
        dialect.same_key(of_log, of_creation, column.column_type.log)
        for of_log, of_creation, column in zip(
            key_values(table, dialect, "l."),
            key_values(table, dialect, "c."),
            table.key_columns,
            strict=True,
        )
    )
    since = f"PARTITION BY {', '.join(f'c.{key}' for key in keys)}, c.{position}"
    return (
        f"SELECT DISTINCT {shown}, {_WAITS_FOR} AS {waiting_column(table)}\nFROM (\n"
        f"  SELECT l.*, c.{position} AS cdc__born_at, count(*) OVER ({since}) AS cdc__events\n"
        f"  FROM ({_creations(table, changes, state, dialect)}) AS c\n"
        f"  JOIN {changes} AS l ON {same} AND l.{position} >= c.{position}) AS e\n"
        f"{_each_unsent(dialect)}\n"
        f"WHERE {naming.OP} <> 'd'\n"
        # No event since the creation has sent the value, or deleted the row.
        f"GROUP BY {of_event}, cdc__born_at, cdc__events, {_WAITS_FOR}\n"
        "HAVING count(*) = cdc__events"
    )


def waiting_column(table: Table) -> str:
    """Return the name that the SELECT gives to the column that a row waits for."""
    return _WAITS_FOR if "waits_for" in table.key else "waits_for"


def incomplete_rows_in(database: str, table: Table) -> str:
    """Return that SELECT for Athena and Trino, over the tables of a database of the catalog."""
    changes, state = (
        f"{TRINO.name(database)}.{TRINO.name(name)}" for name in (table.changes, table.name)
    )
    return incomplete_rows(table, changes=changes, state=state, dialect=TRINO)


def shown_keys(table: Table, dialect: Dialect, event: str = "") -> dict[str, str]:
    """Return the keys of an event as `<t>_current` has them, by quoted name."""
    shown = _stored(table, event, dialect)
    if dialect.engine == "trino":  # its view has no type with a time zone
        for column in table.key_columns:
            if column.column_type.conversion is Conversion.TIMESTAMPTZ:
                name = dialect.name(column.name)
                shown[name] = in_utc(shown[name])
    return shown


def _stored(table: Table, event: str, dialect: Dialect) -> dict[str, str]:
    """Return the keys of an event with the state's types, by quoted name."""
    return {
        (name := dialect.name(column.name)): to_state(
            f"{event}.{name}" if event else name, column.column_type, dialect
        )
        for column in table.key_columns
    }


def _creations(table: Table, changes: str, state: str | None, dialect: Dialect) -> str:
    """Return a SELECT of the creations of changed keys that lack a value and are not applied."""
    position, join, where = naming.POSITION, "", ""
    keys = _stored(table, "l", dialect)
    if state is not None:
        on = " AND ".join(
            dialect.same_key(f"s.{key}", value, column.column_type.state)
            for (key, value), column in zip(keys.items(), table.key_columns, strict=True)
        )
        join = f" LEFT JOIN {state} AS s ON {on}"
        where = f" AND (s.{position} IS NULL OR s.{position} < l.{position})"
    truncate = f"SELECT max({position}) FROM {changes} WHERE {naming.OP} = 't'"
    return (
        f"SELECT {', '.join(f'l.{key}' for key in keys)}, l.{position}\n"
        f"    FROM {changes} AS l{join}\n    WHERE {lacks_values('l.')}{where}\n"
        f"      AND l.{position} > coalesce(({truncate}), '')"
    )


def _each_unsent(dialect: Dialect) -> str:
    """Return a join of each event with the columns whose values it lacks."""
    if dialect.engine == "spark":
        return f"LATERAL VIEW explode(e.{naming.UNAVAILABLE}) u AS {_WAITS_FOR}"
    return f"CROSS JOIN UNNEST(e.{naming.UNAVAILABLE}) AS u({_WAITS_FOR})"
