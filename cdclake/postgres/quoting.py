"""The one place where a name or a value becomes part of an SQL text."""

from __future__ import annotations

from collections.abc import Iterable


def identifier(name: str) -> str:
    """`name` as a quoted SQL identifier; quoted always, so that no word and no case matters.

    >>> identifier('a"b c')
    '"a""b c"'
    """
    if not name or "\0" in name:
        raise ValueError(f"PostgreSQL has no name like {name!r}")
    return '"' + name.replace('"', '""') + '"'


def qualified(schema: str, name: str) -> str:
    """`schema.name`, both quoted."""
    return f"{identifier(schema)}.{identifier(name)}"


def identifiers(names: Iterable[str]) -> str:
    """A list of columns as it stands between parentheses."""
    return ", ".join(identifier(name) for name in names)


def literal(text: str) -> str:
    """`text` as an SQL string, right under either setting of `standard_conforming_strings`.

    >>> literal("it's")
    "'it''s'"
    """
    if "\0" in text:
        raise ValueError("a PostgreSQL text holds no zero byte")
    quoted = text.replace("'", "''")
    if "\\" in quoted:
        return "E'" + quoted.replace("\\", "\\\\") + "'"
    return f"'{quoted}'"
