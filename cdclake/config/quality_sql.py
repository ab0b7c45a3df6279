"""Quality rules of the pipeline file as conditions in Spark's SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from cdclake.config.derived_sql import is_unstable, message_of
from cdclake.config.problems import Refused, did_you_mean
from cdclake.config.quality_model import RuleEntry
from cdclake.debezium.field_values import holds
from cdclake.debezium.types import ColumnType
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.limit_condition import broken_limit
from cdclake.quality_rule import QualityRule, ValueLimit

_NUMBERS = ("int", "bigint", "float", "double", "decimal")
_BITS = {"int": 32, "bigint": 64}
_MAX_REAL = Decimal("3.4028234e38")
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
    conditions = (
        QualityRule(name=name, kind="rows", violated=f"NOT ({_checked(table, condition)})")
        for name, condition in (rule.sql or {}).items()
    )
    withholds = rule.on == "quarantine"
    return [*(_of_limit(limit, table, withholds) for limit in _limits(rule, table)), *conditions]


def _limits(rule: RuleEntry, table: RuleTable) -> Iterator[ValueLimit]:
    """Yield the limits of single columns, whose `column` is its name in the source."""
    for column in rule.not_null or ():
        yield ValueLimit(column=column, test="not_null")
    for column, values in (rule.one_of or {}).items():
        if not values:
            raise Refused(f"no value is allowed in {column!r}", "list the values, or remove it")
        allowed = tuple(_spelled(table, column, value) for value in values)
        yield ValueLimit(column=column, test="in", allowed=allowed)
    for column, limits in (rule.range or {}).items():
        low, high = (
            None if limit is None else _spelled(table, column, limit)
            for limit in (limits.min, limits.max)
        )
        yield ValueLimit(column=column, test="range", low=low, high=high)


def _of_limit(limit: ValueLimit, table: RuleTable, withholds: bool) -> QualityRule:
    column = limit.column
    name, kind = _name(table, column), table.types[column]
    state = "string" if kind is None else kind.state  # without a type, the column is refused
    return QualityRule(
        name=f"{limit.test}({column})",
        kind="rows",
        violated=broken_limit(limit, name, state),
        limit=replace(limit, column=table.names[column]) if withholds else None,
    )


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
            f"{table.name!r} has no column {column!r}", hint or "name a column that is not excluded"
        )
    return SPARK.name(table.names[column])


def _spelled(table: RuleTable, column: str, value: Any) -> str:
    """Return the text of a value; raise Refused if it is not one of the column's type."""
    _name(table, column)
    kind = table.types[column]
    if kind is not None and not _is_of(kind, value):
        raise Refused(
            f"{value!r} is not a valid value of {column!r}, which is {kind.state} in the lake",
            "write a value of that type; times as `2026-11-26T08:30:00`",
        )
    if kind is not None and kind.state in _TIMES:  # Spark reads fewer spellings than Python
        return _TIMES[kind.state].fromisoformat(str(value)).isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_of(kind: ColumnType, value: Any) -> bool:
    """Check that the type can hold the value exactly: a rounded limit would be another rule."""
    base = kind.state.split("(")[0]
    if base == "boolean" or isinstance(value, bool):
        return base == "boolean" and isinstance(value, bool)
    try:
        if base in _TIMES:
            _TIMES[base].fromisoformat(str(value))
            return True
        if base in _NUMBERS:
            return _is_number(kind, Decimal(str(value)), str(value))
    except (InvalidOperation, ValueError):
        return False
    return base == "string" and isinstance(value, str)


def _is_number(kind: ColumnType, number: Decimal, text: str) -> bool:
    if not number.is_finite():
        return False
    if kind.state in _BITS:
        limit = 1 << (_BITS[kind.state] - 1)
        return text.lstrip("-").isdecimal() and -limit <= number < limit
    if kind.state == "float" and abs(number) > _MAX_REAL:
        return False
    is_held = holds(kind)
    return is_held is None or is_held(text)


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
