"""Parsers of the values inside the pipeline file: table names, types, masks, identities.

Each `parse_` function returns the parsed value, or raises `Refused` with what to write instead.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, get_args

from cdclake import naming
from cdclake.config.problems import Refused
from cdclake.config.type_problems import check_length, refused_type
from cdclake.debezium.types import ColumnType, parse_type
from cdclake.masks import MaskKind

_QUOTED = r'"(?:[^"]|"")+"'
_MAX_NAME_BYTES = 63  # PostgreSQL's NAMEDATALEN - 1
_SYSTEM_SCHEMAS = frozenset({"pg_catalog", "information_schema", "pg_toast"})


def parse_table_key(spelling: str) -> tuple[str, str]:
    """Return (schema, table) of a key of `tables`.

    The first dot separates them. A name that starts with a double quote is parsed as PostgreSQL
    does, so either part may contain dots and quotes.

    >>> parse_table_key("public.Order Lines")
    ('public', 'Order Lines')
    >>> parse_table_key('"my.schema"."a.b"')
    ('my.schema', 'a.b')
    """
    parts = re.fullmatch(rf"({_QUOTED}|[^\".][^.]*)\.({_QUOTED}|[^\"].*)", spelling, re.DOTALL)
    if parts is None:
        raise Refused(
            f"the table key {spelling!r} is not `schema.table`",
            f"write it like `public.{spelling.strip('.') or 'orders'}`; quote names that start with"
            ' a double quote or contain dots like \'"my.schema"."a.b"\'',
        )
    schema, table = (unquoted(part) for part in parts.groups())
    for name in (schema, table):
        check_source_name(name)
    if schema == naming.SOURCE_SCHEMA:
        raise Refused(
            f"the schema {schema!r} is reserved for cdclake's own tables",
            "remove this table from the file",
        )
    if schema in _SYSTEM_SCHEMAS:
        raise Refused(
            f"the schema {schema!r} is a system schema, which logical replication excludes",
            "remove this table from the file",
        )
    return schema, table


def unquoted(part: str) -> str:
    """Return the name that PostgreSQL reads; text that is not one quoted name stays as it is.

    >>> unquoted('"a""b"'), unquoted('"a"b"')
    ('a"b', '"a"b"')
    """
    return part[1:-1].replace('""', '"') if re.fullmatch(_QUOTED, part) else part


def check_source_name(name: str) -> str:
    """Return `name` if it is a valid PostgreSQL identifier."""
    if not name or "\0" in name:
        raise Refused(f"invalid PostgreSQL name {name!r}", "write the name as in the source")
    if len(name.encode()) > _MAX_NAME_BYTES:
        raise Refused(
            f"the name {name[:20]!r}... is longer than PostgreSQL's {_MAX_NAME_BYTES} bytes",
            "write the name as PostgreSQL stores it (`\\d` shows it, truncated)",
        )
    return name


def parse_column_type(spelling: str) -> ColumnType:
    """Parse a column type."""
    parsed = parse_type(spelling)
    if parsed is None:
        raise refused_type(spelling)
    return check_length(spelling, parsed)


class Mask(NamedTuple):
    """Masking of a column's values in the connector."""

    kind: MaskKind
    length: int | None = None


def parse_mask(spelling: str) -> Mask:
    """Parse a mask: its kind; for `truncate(n)`, which keeps the first n characters, with n."""
    for kind in get_args(MaskKind):
        if kind == spelling.strip() != "truncate":
            return Mask(kind)
    match = re.fullmatch(r"\s*truncate\s*\(\s*([1-9][0-9]{0,8})\s*\)\s*", spelling)
    if match is None:
        raise Refused(
            f"unknown mask {spelling!r}",
            "write `hash`, `token`, `redact`, `month` or `null`, or `truncate(n)` to keep n"
            " characters",
        )
    return Mask("truncate", int(match[1]))


class ReplicaIdentity(NamedTuple):
    """Part of the old row that PostgreSQL logs; `index_name` is the exact name of the index."""

    kind: Literal["default", "full", "index"]
    index_name: str | None = None


def parse_replica_identity(spelling: str) -> ReplicaIdentity:
    """Parse a replica identity: `default`, `full` or `index NAME`."""
    words = spelling.strip()
    match = re.fullmatch(r"index\s+(.+)", words, re.DOTALL | re.IGNORECASE)
    if match is not None:
        return ReplicaIdentity("index", check_source_name(unquoted(match[1])))
    if words.lower() == "default":
        return ReplicaIdentity("default")
    if words.lower() == "full":
        return ReplicaIdentity("full")
    raise Refused(
        f"unknown replica_identity {spelling!r}",
        "write `default` (the primary key), `full` (the whole old row) or `index NAME`",
    )
