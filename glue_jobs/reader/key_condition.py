"""Conditions of the rows of some keys, for DuckDB: in a changelog, and in the state or its view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cdclake.debezium.key_spelling import differing_ending, one_spelling
from cdclake.debezium.types import Conversion
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import DUCKDB
from cdclake.plan import Column
from cdclake.trace.row_key import RowKey


def in_changelog(keys: Sequence[RowKey]) -> str:
    """Return the condition of the changelog's rows of these keys, in any of their spellings."""
    return _condition(keys, _in_one_spelling, _literal)


def in_state(keys: Sequence[RowKey]) -> str:
    """Return the condition of the rows of these keys in the state and in its view."""
    return _condition(keys, _of_state, _state_literal)


def _condition(
    keys: Sequence[RowKey],
    compared: Callable[[Column], str],
    literal: Callable[[RowKey, Column], str],
) -> str:
    columns = keys[0].table.key_columns
    names = [compared(column) for column in columns]
    if len(keys) == 1:  # files are left out by equations, not by tuples
        values = [literal(keys[0], column) for column in columns]
        return " AND ".join(f"{n} = {value}" for n, value in zip(names, values, strict=True))
    rows = (f"({', '.join(literal(key, column) for column in columns)})" for key in keys)
    return f"({', '.join(names)}) IN ({', '.join(rows)})"


def _in_one_spelling(column: Column) -> str:
    name, ending = DUCKDB.name(column.name), differing_ending(column.column_type)
    if ending is None:
        return name
    pattern, replacement = ending
    return f"regexp_replace({name}, {DUCKDB.text(f'{pattern}$')}, {DUCKDB.text(replacement)})"


def _of_state(column: Column) -> str:
    if column.column_type.conversion is Conversion.NONE:
        return _in_one_spelling(column)
    return DUCKDB.name(column.name)


def _literal(key: RowKey, column: Column) -> str:
    value = one_spelling(key.values[column.name], column.column_type)
    return f"CAST({DUCKDB.text(str(value))} AS {column.column_type.log})"


def _state_literal(key: RowKey, column: Column) -> str:
    return to_state(_literal(key, column), column.column_type, DUCKDB)
