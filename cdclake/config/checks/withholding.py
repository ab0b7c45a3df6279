"""Rules with `on: quarantine` that would leave rows of mixed values, or judge rows inexactly.

The decoders and Spark compare the lake's values, so their comparison must be PostgreSQL's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cdclake.config import literals
from cdclake.config.document import Document
from cdclake.config.partial_model import ColumnOutline, TableOutline, try_parse
from cdclake.config.problems import Problem, Refused
from cdclake.debezium.types import ColumnType

_ORDERED = ("int", "bigint", "float", "double", "decimal", "date", "timestamp", "timestamp_ntz")
_SPELLED_ONCE = ("boolean", "text", "varchar", "enum")  # equal values have one text
_OR_WARN = "or write `on: warn`"


def check_withholding(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse rules with `on: quarantine` that would withhold rows wrongly."""
    for table in tables:
        rules = table.entry.get("checks")
        for number, rule in enumerate(rules if isinstance(rules, list) else ()):
            if not isinstance(rule, dict) or rule.get("on") != "quarantine":
                continue
            try:
                _check_rows(table)
                _check_limits(table, rule)
            except Refused as refused:
                at = (*table.location, "checks", number)
                yield document.problem(at, refused.message, refused.remedy)


def _check_rows(table: TableOutline) -> None:
    """Refuse rules of a table whose updates may leave out values.

    Such an update that follows a withheld one would get the value from before the withheld one, so
    that the lake showed a row that the source never had. Polls read whole rows.
    """
    if table.is_polled:
        return
    spelling = table.entry.get("replica_identity")
    identity = try_parse(literals.parse_replica_identity, spelling)
    if identity is not None and identity.kind == "full":
        return
    key = {name for _, name in table.key}
    for column in table.columns:
        is_left_out = not column.excluded and column.type is not None and column.type.toastable
        if is_left_out and column.source not in key:
            raise Refused(
                f"updates of {table.spelled!r} may leave out {column.source!r} as unchanged, and"
                " after a withheld update its value would be one that the row no longer had",
                f"under {table.spelled} write `replica_identity: full`, {_OR_WARN}",
            )


def _check_limits(table: TableOutline, rule: dict[str, Any]) -> None:
    for test in ("in", "range"):
        limits = rule.get(test)
        for source in limits if isinstance(limits, dict) else ():
            column = table.column(source)
            if column is not None and column.type is not None:
                _check_limit(test, column, column.type)


def _check_limit(test: str, column: ColumnOutline, kind: ColumnType) -> None:
    if column.masked:
        raise Refused(
            f"`{test}` of {column.source!r} would judge masked values",
            f"remove the column's `mask`, or the column from the rule, {_OR_WARN}",
        )
    is_ordered = not kind.array and kind.state.split("(")[0] in _ORDERED
    if is_ordered or (test == "in" and not kind.array and kind.base in _SPELLED_ONCE):
        return
    what = "equal values may differ as text" if test == "in" else "its values have no exact order"
    instead = "declare another type"
    if kind.base == "numeric":
        instead = "declare numeric(p,s)"
    elif kind.base in _SPELLED_ONCE and not kind.array:
        instead = "use `in`"
    raise Refused(
        f"`{test}` cannot withhold rows by {column.source!r}, which is {kind}: {what}",
        f"{instead}, remove the column from the rule, {_OR_WARN}",
    )
