"""Formats of a query's answer: `cdclake sql --format`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from cdclake.cli.aligned import aligned, counted, cut, on_one_line, table_width

if TYPE_CHECKING:
    from cdclake.query_answer import Answer

MAX_CELL_WIDTH = 60
_NUMBERS = ("BIGINT", "INT", "DECIMAL", "DOUBLE", "FLOAT", "REAL", "bigint", "double")


class Format(StrEnum):
    """Format of the rows of a query."""

    TABLE = "table"
    LINE = "line"
    CSV = "csv"
    JSON = "json"
    MD = "md"
    PARQUET = "parquet"


# Formats for people, which show the first rows only.
SHOWN = (Format.TABLE, Format.LINE, Format.MD)


def lines_of(answer: Answer, chosen: Format | None, width: int | None) -> Iterator[str]:
    """Yield the lines of an answer for a terminal of this width; None without a terminal.

    Without a chosen format it is a table, or one line per value if a row does not fit.
    """
    if chosen in (None, Format.TABLE):
        rows = [[cut(on_one_line(value), MAX_CELL_WIDTH) for value in row] for row in answer.rows]
        names = [cut(name, MAX_CELL_WIDTH) for name, _ in answer.columns]
        if chosen is None and width is not None and table_width(names, rows) > width:
            chosen = Format.LINE
        else:
            yield from (_fitted(line, width) for line in _table(answer, names, rows))
            return
    yield from _WRITERS[chosen](answer, width)


def footer(answer: Answer) -> str:
    """Return how many rows are shown, and how to get the others."""
    shown = counted(len(answer.rows), "row")
    return f"the first {shown}; --format csv or json prints all of them" if answer.more else shown


def _table(answer: Answer, names: list[str], rows: list[list[str]]) -> list[str]:
    kinds = dict(zip(names, (kind for _, kind in answer.columns), strict=True))
    return aligned(names, rows, {name for name in names if kinds[name].startswith(_NUMBERS)})


def _fitted(line: str, width: int | None) -> str:
    return line if width is None else cut(line, width)


def _values(answer: Answer, width: int | None) -> Iterator[str]:
    names = [name for name, _ in answer.columns]
    longest = max(map(len, names), default=0)
    for number, row in enumerate(answer.rows, 1):
        yield f"row {number}"
        for name, value in zip(names, row, strict=True):
            yield _fitted(f"  {name:<{longest}}  {on_one_line(value)}".rstrip(), width)


def _csv(answer: Answer, _: int | None) -> Iterator[str]:
    yield _csv_line([name for name, _ in answer.columns])
    for row in answer.rows:
        yield _csv_line(row)


def _csv_line(values: list[Any]) -> str:
    return ",".join(map(_csv_field, values))


def _csv_field(value: Any) -> str:
    """Return a field as RFC 4180 has it; "" is an empty text, nothing between commas is NULL."""
    if value is None:
        return ""
    text = json.dumps(value) if isinstance(value, dict | list | bool) else str(value)
    if text and not any(character in text for character in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _markdown(answer: Answer, _: int | None) -> Iterator[str]:
    names = [name for name, _ in answer.columns]
    yield _markdown_line(names)
    yield _markdown_line(["---"] * len(names))
    for row in answer.rows:
        yield _markdown_line([cut(on_one_line(value), MAX_CELL_WIDTH) for value in row])


def _markdown_line(cells: list[str]) -> str:
    escaped = (cell.replace("\\", "\\\\").replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


_WRITERS: Mapping[Format, Callable[[Answer, int | None], Iterator[str]]] = {
    Format.LINE: _values,
    Format.CSV: _csv,
    Format.MD: _markdown,
}
