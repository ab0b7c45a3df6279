"""Aligned columns of text: the tables that the verbs print."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size

UNKNOWN = "-"
_GAP = "  "
# A terminal would obey the control characters of a value.
ESCAPED_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}
_ESCAPED = ESCAPED_CONTROLS | str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


def number(value: int | None) -> str:
    """Return a count with thousands separators; `-` if it is not known.

    >>> number(123899)
    '123,899'
    """
    return UNKNOWN if value is None else f"{value:,}"


def counted(count: int, thing: str) -> str:
    """Return a count with its noun, in the plural unless it is one.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def size(count: int) -> str:
    """Return a number of bytes in the unit that fits.

    >>> size(1500), size(2_500_000)
    ('1.5 kB', '2.5 MB')
    """
    value, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{value:.0f} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


def on_one_line(value: Any) -> str:
    """Return a value as text without line breaks; nothing for NULL."""
    return "" if value is None else str(value).translate(_ESCAPED)


def cut(text: str, width: int) -> str:
    """Return the text in at most `width` columns of a terminal, with `…` where it is cut.

    >>> cut("abcdef", 4)
    'abc…'
    """
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def aligned(
    names: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()
) -> list[str]:
    """Return a line of names, a rule, and a line for each row; columns of `right` end together."""
    widths = [max(map(cell_len, column)) for column in zip(names, *rows, strict=True)]
    is_right = [name in right for name in names]
    lines = [names, ["-" * width for width in widths], *rows]
    return [_line(line, widths, is_right) for line in lines]


def table_width(names: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return the width of these rows when they are aligned."""
    widths = [max(map(cell_len, column)) for column in zip(names, *rows, strict=True)]
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _line(cells: Sequence[str], widths: Sequence[int], is_right: Sequence[bool]) -> str:
    padded = []
    for cell, width, right in zip(cells, widths, is_right, strict=True):
        space = " " * (width - cell_len(cell))
        padded.append(f"{space}{cell}" if right else f"{cell}{space}")
    return _GAP.join(padded).rstrip()
