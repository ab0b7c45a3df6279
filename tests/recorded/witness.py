"""PostgreSQL's own word for every row, kept by triggers while a script runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import psycopg

from cdclake.plan import Table
from cdclake.postgres.quoting import literal, qualified
from tests.recorded.recording import FOLDER, Witnessed

Connection = psycopg.Connection[Any]


def install(connection: Connection) -> None:
    """Make the witness's own tables and functions."""
    connection.execute((FOLDER / "witness.sql").read_bytes())


def attach(connection: Connection, table: Table) -> None:
    """Have every change of the table noted from now on."""
    name = qualified(table.schema, table.table)
    keys = [column.source for column in table.key_columns]
    arguments = ", ".join(literal(text) for text in (table.source, *keys))
    for trigger, events in (
        ("witness_rows", "AFTER INSERT OR UPDATE OR DELETE ON {} FOR EACH ROW"),
        ("witness_truncates", "AFTER TRUNCATE ON {} FOR EACH STATEMENT"),
    ):
        connection.execute(
            f"CREATE TRIGGER {trigger} {events.format(name)}"
            f" EXECUTE FUNCTION witness.note({arguments})".encode()
        )


def note_rows(connection: Connection, table: Table) -> None:
    """Note every row that the table has now, in the order in which a scan finds them."""
    name = qualified(table.schema, table.table)
    connection.execute("CALL witness.read(%s, %s)", (table.source, name))


def testimony(connection: Connection, tables: Iterable[Table]) -> Iterator[Witnessed]:
    """Everything that was noted, in order; what was rolled back is not among it."""
    keys = {table.source: [column.source for column in table.key_columns] for table in tables}
    chunks: set[tuple[str, str, str]] = set()
    said = connection.execute(
        "SELECT source, op, row, before, stored_apart FROM witness.said ORDER BY number"
    )
    for source, op, row, before, apart in said:
        stored = {(source, name, chunk) for name, chunk in (apart or {}).items() if chunk}
        unsent = [name for table, name, _ in sorted(stored & chunks)] if op == "UPDATE" else []
        chunks |= stored
        stays = op == "UPDATE" and all(row[key] == before[key] for key in keys[source])
        yield Witnessed(source, op, row, None if stays else before, tuple(unsent))
