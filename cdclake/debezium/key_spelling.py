"""One spelling for equal values of a key, whose texts in the changelog may differ.

PostgreSQL keeps the zeros that a `numeric` was written with, so that 1.5 and 1.50 are one key of
two texts. A widened `numeric(p,s)`, `timestamptz(n)` or `char(n)` lengthens the texts of all values
that are written from then on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from struct import Struct
from typing import Any

from cdclake.debezium.types import ColumnType

_REAL = Struct("f")
_ZEROS = (r"(?:([.][0-9]*[1-9])0+|[.]0+)(Z?)", r"\1\2")  # at the end of a fraction
_ENDINGS: Mapping[str, tuple[str, str]] = {
    "numeric": _ZEROS,
    "timestamptz": _ZEROS,
    "char": (" +", ""),
}
_PATTERNS = {base: re.compile(rf"{pattern}\Z") for base, (pattern, _) in _ENDINGS.items()}


def one_spelling(value: Any, column_type: ColumnType) -> Any:
    """Return a changelog's value in the spelling that all equal values share.

    A `real` becomes its exact value: Java, PostgreSQL and Python write it with different digits.
    """
    if column_type.log == "float":
        return _exact_real(value)
    ending = differing_ending(column_type)
    if ending is None or not isinstance(value, str):
        return value
    return _PATTERNS[column_type.base].sub(ending[1], value)


def differing_ending(column_type: ColumnType) -> tuple[str, str] | None:
    """Return the pattern of the ending that equal texts may differ in, and its replacement."""
    return None if column_type.array else _ENDINGS.get(column_type.base)


def _exact_real(value: Any) -> Any:
    """Return the real that is nearest to a number; other values as they are.

    >>> [_exact_real(value) for value in (0.1, 0.5, None, "x")]
    [0.10000000149011612, 0.5, None, 'x']
    """
    if not isinstance(value, float):
        return value
    try:
        return _REAL.unpack(_REAL.pack(value))[0]
    except OverflowError:  # it is of no real
        return value
