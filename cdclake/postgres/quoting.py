"""Quoting of names and values in the text of PostgreSQL statements."""

from __future__ import annotations

from collections.abc import Iterable


def identifier(name: str) -> str:
    """Return `name` as an SQL identifier, always quoted, so that keywords and case do not matter.

    >>> identifier('a"b c')
    '"a""b c"'
    """
    if not name or "\0" in name:
        raise ValueError(f"invalid PostgreSQL name {name!r}")
    return '"' + name.replace('"', '""') + '"'


def qualified(schema: str, name: str) -> str:
    """Return `schema.name`, both quoted."""
    return f"{identifier(schema)}.{identifier(name)}"


def identifiers(names: Iterable[str]) -> str:
    """Return a quoted column list, without its parentheses."""
    return ", ".join(identifier(name) for name in names)


def literal(text: str) -> str:
    """Return `text` as an SQL string, valid for both values of `standard_conforming_strings`.

    >>> literal("it's")
    "'it''s'"
    """
    if "\0" in text:
        raise ValueError("a PostgreSQL text cannot contain a zero byte")
    quoted = text.replace("'", "''")
    if "\\" in quoted:
        return "E'" + quoted.replace("\\", "\\\\") + "'"
    return f"'{quoted}'"
