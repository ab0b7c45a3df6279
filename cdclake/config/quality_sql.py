"""Quality rules of the pipeline file as conditions in Spark's SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from cdclake.config.derived_sql import is_unstable, message_of
from cdclake.config.problems import Refused, did_you_mean
from cdclake.config.quality_model import RuleEntry
from cdclake.debezium.types import ColumnType
from cdclake.iceberg.dialect import SPARK
from cdclake.quality_rule import QualityRule

_NUMBERS = ("int", "bigint", "float", "double", "decimal")
_TIMES = {"date": date, "timestamp": datetime, "timestamp_ntz": datetime}
_NOT_OF_A_ROW = (exp.AggFunc, exp.Query, exp.Subquery, exp.Window, exp.Star)


@dataclass(frozen=True, slots=True)
class RuleTable:
    """Table whose rules are resolved: its columns by their name in the source."""

    name: str
    names: Mapping[str, str]  # lake names
    types: Mapping[str, ColumnType | None]


def resolve_rule(
    rule: RuleEntry, table: RuleTable, keys: Mapping[str, Sequence[str]]
) -> list[QualityRule]:
    """Return the rules of one entry of `checks:`; `keys` are the keys of all tables.

    Raises:
        Refused: if the table has no such column, a value is not one of its type, a condition is
            not one of a single row, or the referenced key is not one column.
    """
    if rule.freshness is not None:
        return [QualityRule(name="freshness", kind="freshness", most=rule.freshness)]
    if rule.row_count is not None:
        least, most = rule.row_count.min, rule.row_count.max
        return [QualityRule(name="row_count", kind="row_count", least=least, most=most)]
    if rule.references is not None:
        return [_reference(table, *each, keys) for each in rule.references.items()]
    return [
        QualityRule(name=name, kind="rows", violated=violated)
        for name, violated in _conditions(rule, table)
    ]


def _conditions(rule: RuleEntry, table: RuleTable) -> Iterator[tuple[str, str]]:
    """Yield the name of each rule of rows, and when a row breaks it."""
    for column in rule.not_null or ():
        yield f"not_null({column})", f"{_name(table, column)} IS NULL"
    for column, values in (rule.one_of or {}).items():
        if not values:
            raise Refused(f"no value is allowed in {column!r}", "list the values, or remove it")
        listed = ", ".join(_literal(table, column, value) for value in values)
        yield f"in({column})", f"NOT ({_name(table, column)} IN ({listed}))"
    for column, limits in (rule.range or {}).items():
        name = _name(table, column)
        beyond = [
            f"{name} {sign} {_literal(table, column, limit)}"
            for sign, limit in (("<", limits.min), (">", limits.max))
            if limit is not None
        ]
        yield f"range({column})", " OR ".join(beyond)
    for name, condition in (rule.sql or {}).items():
        yield name, f"NOT ({_checked(table, condition)})"


def _reference(
    table: RuleTable, column: str, other: str, keys: Mapping[str, Sequence[str]]
) -> QualityRule:
    if other not in keys:
        hint = did_you_mean(other, keys)
        raise Refused(f"the file has no table {other!r}", hint or "write the table's lake name")
    if len(keys[other]) != 1:
        raise Refused(
            f"the key of {other!r} has {len(keys[other])} columns",
            "refer to a table whose key is one column, or use a derived table",
        )
    _name(table, column)
    return QualityRule(
        name=f"references({column})",
        kind="references",
        column=table.names[column],
        table=other,
        key=keys[other][0],
    )


def _name(table: RuleTable, column: str) -> str:
    if column not in table.names:
        hint = did_you_mean(column, table.names)
        raise Refused(
            f"{table.name!r} has no column {column!r}", hint or "name a column that flows"
        )
    return SPARK.name(table.names[column])


def _literal(table: RuleTable, column: str, value: Any) -> str:
    """Return the value as a literal of the column's type."""
    name, kind = _name(table, column), table.types[column]
    if kind is None:
        return name  # the column itself is refused
    state = kind.state
    if not _is_of(state, value):
        raise Refused(
            f"{value!r} is no value of {column!r}, which is {state} in the lake",
            "write a value of that type; times as `2026-11-26T08:30:00`",
        )
    text = SPARK.text(str(value).lower() if isinstance(value, bool) else str(value))
    return text if state == "string" else f"CAST({text} AS {state})"


def _is_of(state: str, value: Any) -> bool:
    base = state.split("(")[0]
    if base == "boolean" or isinstance(value, bool):
        return base == "boolean" and isinstance(value, bool)
    try:
        if base in _NUMBERS:
            return Decimal(str(value)).is_finite()
        if base in _TIMES:
            _TIMES[base].fromisoformat(str(value))
            return True
    except (InvalidOperation, ValueError):
        return False
    return base == "string" and isinstance(value, str)


def _checked(table: RuleTable, condition: str) -> str:
    """Return the condition with quoted columns; raise Refused if it is not one of a row."""
    try:
        parsed = sqlglot.parse_one(condition, dialect="spark", into=exp.Condition)
    except (ParseError, TokenError) as error:
        raise Refused(
            f"{condition!r} is not valid SQL: {message_of(error)}", "correct it"
        ) from None
    for node in parsed.find_all(*_NOT_OF_A_ROW):
        raise Refused(
            f"{node.sql('spark')} is not part of one row", "use `references`, or a derived table"
        )
    for function in filter(is_unstable, parsed.find_all(exp.Func)):
        raise Refused(
            f"{function.sql('spark')} gives another value at each check",
            "use columns only, or `freshness`",
        )
    known = {**{lake: lake for lake in table.names.values()}, **table.names}
    for column in parsed.find_all(exp.Column):
        _name(RuleTable(table.name, known, {}), column.name)
        column.set("this", exp.to_identifier(known[column.name], quoted=True))
    return parsed.sql(dialect="spark")
