"""The small languages inside the pipeline file: table names, types, masks, identities.

Each `parse_` returns what was meant, or raises `Refused` with what to write instead.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from cdclake import naming
from cdclake.config.problems import Refused, did_you_mean
from cdclake.debezium.types import ALIASES, TYPES, ColumnType, parse_type

MASKABLE = frozenset({"text", "varchar", "char", "citext"})

_QUOTED = r'"(?:[^"]|"")+"'
_MAX_NAME_BYTES = 63  # PostgreSQL's NAMEDATALEN - 1
_SYSTEM_SCHEMAS = frozenset({"pg_catalog", "information_schema", "pg_toast"})


def parse_table_key(spelling: str) -> tuple[str, str]:
    """(schema, table) of a key of `tables`.

    The first dot parts them. A name that starts with a double quote is read as PostgreSQL reads
    it, so dots and quotes can be in either part.

    >>> parse_table_key("public.Order Lines")
    ('public', 'Order Lines')
    >>> parse_table_key('"my.schema"."a.b"')
    ('my.schema', 'a.b')
    """
    parts = re.fullmatch(rf"({_QUOTED}|[^\".][^.]*)\.({_QUOTED}|[^\"].*)", spelling, re.DOTALL)
    if parts is None:
        raise Refused(
            f"the table key {spelling!r} is not `schema.table`",
            f"write it like `public.{spelling.strip('.') or 'orders'}`; names that begin with a"
            ' double quote or hold dots like \'"my.schema"."a.b"\'',
        )
    schema, table = (_unquoted(part) for part in parts.groups())
    for name in (schema, table):
        check_source_name(name)
    if schema == naming.SOURCE_SCHEMA:
        raise Refused(
            f"the schema {schema!r} is cdclake's own (heartbeat, signals)",
            "remove this table from the file",
        )
    if schema in _SYSTEM_SCHEMAS:
        raise Refused(
            f"the schema {schema!r} is PostgreSQL's own, which logical replication leaves out",
            "remove this table from the file",
        )
    return schema, table


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if re.fullmatch(_QUOTED, part) else part


def check_source_name(name: str) -> str:
    """`name`, if PostgreSQL can have one like it."""
    if not name or "\0" in name:
        raise Refused(f"{name!r} is no name PostgreSQL can have", "write the name as it is there")
    if len(name.encode()) > _MAX_NAME_BYTES:
        raise Refused(
            f"the name {name[:20]!r}... is longer than PostgreSQL's {_MAX_NAME_BYTES} bytes",
            "write the name as PostgreSQL has it (`\\d` shows it, cut off)",
        )
    return name


def parse_column_type(spelling: str) -> ColumnType:
    """The column type of this spelling."""
    parsed = parse_type(spelling)
    if parsed is not None:
        return parsed
    word = re.split(r"[(\[]", spelling.lower())[0].strip()
    remedy = "an enum is `enum`, a domain its base type; without support: `{exclude: true}`"
    if spelling.count("(") != spelling.count(")"):
        message = f"the type {spelling!r} is cut off at its comma"
        raise Refused(message, f'quote it inside braces: `"{word}(12,2)"`')
    if word in TYPES or word in ALIASES:
        message = f"the type {spelling!r} has parameters or brackets that {word} does not take"
        raise Refused(message, f"write `{word}`, or its form with fewer parameters; {remedy}")
    nearest = did_you_mean(word, [*TYPES, *ALIASES])
    message = f"unknown type {spelling!r}" + (f", {nearest}" if nearest else "")
    raise Refused(message, remedy)


class Mask(NamedTuple):
    """How a column's text is made unreadable before it leaves the connector."""

    kind: Literal["hash", "truncate"]
    length: int | None = None


def parse_mask(spelling: str) -> Mask:
    """The mask: `hash`, or `truncate(n)` which keeps the first n characters."""
    if spelling.strip() == "hash":
        return Mask("hash")
    match = re.fullmatch(r"\s*truncate\s*\(\s*([1-9][0-9]{0,8})\s*\)\s*", spelling)
    if match is None:
        raise Refused(
            f"unknown mask {spelling!r}", "write `hash`, or `truncate(n)` with the characters kept"
        )
    return Mask("truncate", int(match[1]))


class ReplicaIdentity(NamedTuple):
    """What PostgreSQL logs of the old row; `index_name` names the unique index, exactly."""

    kind: Literal["default", "full", "index"]
    index_name: str | None = None


def parse_replica_identity(spelling: str) -> ReplicaIdentity:
    """The replica identity: `default`, `full` or `index NAME`."""
    words = spelling.strip()
    match = re.fullmatch(r"index\s+(.+)", words, re.DOTALL | re.IGNORECASE)
    if match is not None:
        return ReplicaIdentity("index", check_source_name(_unquoted(match[1])))
    if words.lower() == "default":
        return ReplicaIdentity("default")
    if words.lower() == "full":
        return ReplicaIdentity("full")
    raise Refused(
        f"unknown replica_identity {spelling!r}",
        "write `default` (the primary key), `full` (the whole old row) or `index NAME`",
    )
