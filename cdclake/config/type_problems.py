"""Remedies for column types that cannot be declared: one for each kind of mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cdclake.config.problems import Refused, did_you_mean
from cdclake.debezium.types import ALIASES, ARRAY_ELEMENTS, TYPES, ColumnType

_EXCLUDE = "write `{exclude: true}`"
_OTHERS = "write `enum` for an enum, the base type for a domain, `{exclude: true}` for others"

# Types of other systems: the nearest spelling would name a type of another kind.
_FOREIGN: Mapping[str, str] = {
    **dict.fromkeys(("string", "str"), "`text`"),
    "datetime": "`timestamp` or `timestamptz`",
    **dict.fromkeys(("double", "float64"), "`double precision`"),
    "float32": "`real`",
    "number": "`numeric`",
    **dict.fromkeys(("int64", "long"), "`bigint`"),
    "int32": "`integer`",
    **dict.fromkeys(("tinyint", "int16"), "`smallint`"),
    **dict.fromkeys(("blob", "binary"), "`bytea`"),
}

# The first parameter that PostgreSQL accepts.
_LENGTHS: Mapping[str, tuple[int, int]] = {
    "numeric": (1, 1000),
    **dict.fromkeys(("varchar", "char"), (1, 10_485_760)),
    **dict.fromkeys(("bit", "varbit"), (1, 83_886_080)),
    **dict.fromkeys(("timestamp", "timestamptz", "time", "timetz", "interval"), (0, 6)),
    "vector": (1, 16_000),
}
_SCALED = re.compile(r"\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_DIMENSIONS = re.compile(r"\[\s*(\d*)\s*\]")


def check_length(spelling: str, parsed: ColumnType) -> ColumnType:
    """Return `parsed` if PostgreSQL has the type with this length or precision."""
    if not parsed.parameters:
        return parsed
    least, greatest = _LENGTHS[parsed.base]
    if least <= parsed.parameters[0] <= greatest:
        return parsed
    message = f"the type {spelling!r} does not exist: {parsed.base} takes {least} to {greatest}"
    raise Refused(message, "correct the number, or remove it")


def refused_type(spelling: str) -> Refused:
    """Return why the type cannot be declared, and what to write instead."""
    word = re.split(r"[(\[]", spelling.lower())[0].strip()
    if spelling.count("(") != spelling.count(")"):
        message = f"the type {spelling!r} is cut off at its comma"
        return Refused(message, f'quote it inside braces: `"{word}(12,2)"`')
    base = ALIASES.get(word, word)
    if base in TYPES:
        return _refused_form(spelling, word, base)
    if word in _FOREIGN:
        return Refused(f"unknown type {spelling!r}", f"write {_FOREIGN[word]}")
    nearest = did_you_mean(word, [*TYPES, *ALIASES])
    return Refused(f"unknown type {spelling!r}" + (f", {nearest}" if nearest else ""), _OTHERS)


def _refused_form(spelling: str, word: str, base: str) -> Refused:
    """Return why a known type cannot have these parameters or brackets."""
    scaled = _SCALED.search(spelling)
    if base == "numeric" and scaled and not 0 <= int(scaled[2]) <= int(scaled[1]):
        message = (
            f"the type {spelling!r} has a negative scale, or a scale above its precision, which no"
            " decimal of the lake has"
        )
        return Refused(message, f"{_EXCLUDE}, or make it `numeric` in the source")
    dimensions = _DIMENSIONS.findall(spelling)
    if dimensions and base not in ARRAY_ELEMENTS:
        return Refused(f"arrays of {word} are not supported", _EXCLUDE)
    if len(dimensions) > 1:
        message = f"the type {spelling!r} has several dimensions"
        remedy = f"write `{base}[]` if all its values have one, `{{exclude: true}}` otherwise"
        return Refused(message, remedy)
    if any(dimensions):
        return Refused(f"the type {spelling!r} has a size", f"write `{base}[]`")
    forms = ("", "(n)", "(p,s)")[TYPES[base].parameters]
    message = f"the type {spelling!r} has parameters that {word} does not accept"
    return Refused(message, f"write `{base}{forms}`" + (f" or `{base}`" if forms else ""))
