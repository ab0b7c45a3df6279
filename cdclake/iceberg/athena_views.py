"""Statements that create `<t>_current` and `<t>_history` for Athena.

`<t>_current` shows the live rows of the state: all applied changes, without the tail of the
changelog that the local view overlays, since no job would renew the literal in the view. A view in
the Glue catalog cannot have a type with a time zone, so points in time are timestamps in UTC.
"""

from __future__ import annotations

from cdclake import naming
from cdclake.debezium.types import DATE_RANGE_DAYS, TIMESTAMP_RANGE_US, Conversion
from cdclake.iceberg.views import HISTORY_FACTS
from cdclake.plan import Column, Table

_MOMENTS = (naming.COMMITTED_AT, naming.INGESTED_AT)
_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000  # microseconds


def athena_views(table: Table, database: str) -> dict[str, str]:
    """Return the statements that create or replace the views, by the view's name."""
    selects = {
        naming.current_name(table.name): _current(table, database),
        naming.history_name(table.name): _history(table, database),
    }
    return {
        name: f"CREATE OR REPLACE VIEW {_name(database)}.{_name(name)} AS\n{select}"
        for name, select in selects.items()
    }


def _current(table: Table, database: str) -> str:
    columns = [
        _named(_in_utc(_name(c.name)), c.name)
        if c.column_type.conversion is Conversion.TIMESTAMPTZ
        else _name(c.name)
        for c in table.columns
    ]
    listed = ",\n  ".join(columns)
    source = f"{_name(database)}.{_name(table.name)}"
    return f"SELECT\n  {listed}\nFROM {source}\nWHERE NOT {naming.DELETED}"


def _history(table: Table, database: str) -> str:
    facts = [_named(_in_utc(fact), fact) if fact in _MOMENTS else fact for fact in HISTORY_FACTS]
    listed = ",\n  ".join([*facts, *map(_typed, table.columns)])
    return f"SELECT\n  {listed}\nFROM {_name(database)}.{_name(table.changes)}"


def _typed(column: Column) -> str:
    """Return the changelog's value with the state's type; NULL if that type cannot hold it."""
    value = _name(column.name)
    if column.column_type.conversion is Conversion.NONE:
        return value
    return _named(_converted(value, column), column.name)


def _converted(value: str, column: Column) -> str:
    match column.column_type.conversion:
        case Conversion.DECIMAL:
            kind = column.column_type.state
            scale = int(kind.rstrip(")").split(",")[1])
            exact = f"regexp_like({value}, '^-?[0-9]+([.][0-9]{{0,{scale}}}0*)?$')"
            return f"CASE WHEN {exact} THEN TRY_CAST({value} AS {kind}) END"
        case Conversion.DATE:
            day = f"date_add('day', {value}, DATE '1970-01-01')"
            first, last = DATE_RANGE_DAYS
            return f"CASE WHEN {value} BETWEEN {first} AND {last} THEN {day} END"
        case Conversion.TIMESTAMP:
            nanoseconds = f"CAST({value} AS decimal(38,0)) * 1000"
            held = f"{value} BETWEEN {TIMESTAMP_RANGE_US[0]} AND {TIMESTAMP_RANGE_US[1]}"
            return f"CASE WHEN {held} THEN {_in_utc(f'from_unixtime_nanos({nanoseconds})')} END"
        case Conversion.TIMESTAMPTZ:
            return _in_utc(f"from_iso8601_timestamp_nanos({value})")
        case Conversion.TIME:
            return _time_of_day(value)
        case Conversion.BINARY:
            return f"TRY(from_base64({value}))"
        case Conversion.NONE:
            return value


def _in_utc(moment: str) -> str:
    """Return the value as a timestamp in UTC; NULL for a year that Athena does not support."""
    return f"TRY(CAST({moment} AT TIME ZONE 'UTC' AS timestamp(6)))"


def _time_of_day(micros: str) -> str:
    def whole(unit: int) -> str:  # an exact division, so that no engine rounds
        return f"CAST(({micros} - mod({micros}, {unit})) / {unit} AS bigint)"

    def padded(expression: str, digits: int) -> str:
        return f"lpad(CAST({expression} AS varchar), {digits}, '0')"

    minutes, seconds = (f"mod({whole(unit)}, 60)" for unit in (_MINUTE, _SECOND))
    clock = " || ':' || ".join(padded(part, 2) for part in (whole(_HOUR), minutes, seconds))
    rest = f"mod({micros}, {_SECOND})"
    return f"{clock} || CASE WHEN {rest} = 0 THEN '' ELSE '.' || {padded(rest, 6)} END"


def _named(expression: str, name: str) -> str:
    return f"{expression} AS {_name(name)}"


def _name(identifier: str) -> str:
    return f'"{identifier}"'
