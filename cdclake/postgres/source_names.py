"""Names of a table and its columns that Debezium cannot stream, although PostgreSQL has them."""

from __future__ import annotations

from cdclake.postgres.catalog import SourceTable
from cdclake.postgres.quoting import identifier, qualified
from cdclake.postgres.refusal import Refusal

_QUOTES = "\"'`"
_MAX_PARTS = 3
# Java's Character.isWhitespace has none of these, which Python's str.isspace has.
_NOT_JAVA_SPACES = "\x85\xa0\u2007\u202f"


def check_names(actual: SourceTable) -> list[Refusal]:
    """Refuse a table whose name or column names would lose its changes or stop the connector."""
    return [*_check_table_name(actual), *_check_column_names(actual)]


def _check_table_name(actual: SourceTable) -> list[Refusal]:
    """Refuse a name that Debezium's parser of table names refuses or changes.

    Debezium parses the quoted name of each change, and the plain one in signals and, during a
    resync, in the connector's offsets: a name that it refuses there fails every restart.
    """
    flaw = _flaw(f"{actual.schema}.{actual.table}")
    if not flaw and '"' in (actual.schema[-1], actual.table[-1]):
        flaw = "a quotation mark at its end"
    if not flaw:
        return []
    if _flaw(f"x.{actual.table}") or actual.table.endswith('"'):
        statement = f"ALTER TABLE {qualified(actual.schema, actual.table)} RENAME TO"
    else:
        statement = f"ALTER SCHEMA {identifier(actual.schema)} RENAME TO"
    return [
        Refusal(
            actual.source,
            f"its name has {flaw}: Debezium would lose its changes, or could not read it again",
            f"rename it in the source: {statement} ...; or poll it: `capture: {{poll: ...}}`",
        )
    ]


def _flaw(name: str) -> str:
    """Return the first part of a name that Debezium's parser does not keep; "" if there is none."""
    parts = name.split(".")
    if any(each.isspace() and each not in _NOT_JAVA_SPACES for each in name):
        return "a blank"
    if any(2 * quote in name for quote in _QUOTES):
        return "two adjacent quotation marks"
    if any(part[:1] in _QUOTES and part for part in parts):
        return "a quotation mark at its beginning or after a dot"
    if "" in parts or len(parts) > _MAX_PARTS:
        return "several dots, or one at its beginning or end"
    return ""


def _check_column_names(actual: SourceTable) -> list[Refusal]:
    """Refuse columns that differ only by case: Debezium fails at each start, for all tables.

    It compares them before it leaves out the excluded ones.
    """
    first: dict[str, str] = {}
    table, refusals = qualified(actual.schema, actual.table), []
    for name in (column.name for column in actual.columns):
        other = first.setdefault(name.lower(), name)
        if other == name:
            continue
        message = (
            f"the columns {other!r} and {name!r} differ only by case, which stops the connector"
            " for all tables, even if one is excluded"
        )
        remedy = (
            f"rename one in the source: ALTER TABLE {table} RENAME COLUMN {identifier(name)} TO"
            " ...; or poll the table: `capture: {poll: ...}`"
        )
        refusals.append(Refusal(actual.source, message, remedy))
    return refusals
