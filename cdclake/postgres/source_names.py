"""Names of a table and its columns that Debezium cannot stream, although PostgreSQL has them."""

from __future__ import annotations

from cdclake.delivery_remedies import read_again
from cdclake.plan import Table
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


def check_rereading(schema: str, table: str) -> list[Refusal]:
    """Refuse a table that Debezium can stream, but not read again while it streams.

    Signals, and during a resync the connector's offsets, have the plain name. Debezium skips a name
    that its parser refuses in a signal, and a resync of it would never end.
    """
    name, flaw = f"{schema}.{table}", ""
    if any(each.isspace() and each not in _NOT_JAVA_SPACES for each in name):
        flaw = "a blank"
    elif "" in (parts := name.split(".")) or len(parts) > _MAX_PARTS:
        flaw = "several dots, or one at its beginning or end"
    lost = "Debezium cannot read it again, nor add it to a running lake"
    return [_refuse(schema, table, flaw, lost)] if flaw else []


def can_be_read_again(table: Table) -> bool:
    """Check whether the stream can read a table from the WAL again, and delete its stale rows."""
    return table.delivery == "stream" and not check_rereading(table.schema, table.table)


def rereading_remedy(table: Table, *, options: str = "", is_deployed: bool = False) -> str:
    """Return how all rows of the table come into the lake from the source again."""
    refusals = check_rereading(table.schema, table.table) if table.delivery != "poll" else []
    if not refusals:
        return read_again(table.name, table.delivery, options=options, is_deployed=is_deployed)
    remedy = f"{refusals[0].remedy} ({refusals[0].message})"
    if table.delivery == "stream":
        return f"{remedy}; under another name it needs another `name:`"
    leave = "deploy" if is_deployed else "run `cdclake up FILE`"
    return f"remove the table from the file, {leave}, and {remedy}; both under another `name:`"


def repair_lacking(table: Table, *, options: str = "", is_deployed: bool = False) -> str:
    """Return what to do about quarantined events that do not have the row's values."""
    again = rereading_remedy(table, options=options, is_deployed=is_deployed)
    return f"store another value in the source, or exclude the column; then {again}"


def _check_table_name(actual: SourceTable) -> list[Refusal]:
    """Refuse a name that Debezium's parser of table names changes; it parses that of each event."""
    flaw = ""
    if any(2 * quote in part for quote in _QUOTES for part in (actual.schema, actual.table)):
        flaw = "two adjacent quotation marks"
    elif any(part[:1] in _QUOTES for part in f"{actual.schema}.{actual.table}".split(".") if part):
        flaw = "a quotation mark at its beginning or after a dot"
    elif '"' in (actual.schema[-1], actual.table[-1]):
        flaw = "a quotation mark at its end"
    lost = "Debezium would lose its changes"
    return [_refuse(actual.schema, actual.table, flaw, lost)] if flaw else []


def _refuse(schema: str, table: str, flaw: str, lost: str) -> Refusal:
    statements = f"ALTER TABLE {qualified(schema, table)}, or ALTER SCHEMA {identifier(schema)},"
    return Refusal(
        f"{schema}.{table}",
        f"its name has {flaw}: {lost}",
        f"rename it in the source: {statements} RENAME TO ...; or poll it:"
        " `capture: {poll: ...}`",
    )


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
