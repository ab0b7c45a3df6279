"""What really happened in the source: an audit that triggers write in the changes' transactions.

Of one key the audit's numbers grow in the order of the commits, since its row's lock is held from
the change to the commit, and a truncate's lock of the table is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.model_lake.shapes import ALL_SHAPES, Shape

Place = tuple[str, str]  # a table's name and a key's text
Values = tuple[str | None, ...]  # of `shapes.VALUES`; the large ones as their digests
_DIGESTS = "{0}.v::text, {0}.note, md5({0}.body), md5({0}.doc::text), md5(encode({0}.raw, 'hex'))"

DDL = f"""
CREATE SCHEMA audit;
CREATE TABLE audit.changes (seq bigserial PRIMARY KEY, relation text NOT NULL, op text NOT NULL,
  old_key text, new_key text, old_values text[], new_values text[]);
CREATE FUNCTION audit.key(row_ jsonb, columns text[]) RETURNS text LANGUAGE sql
  RETURN (SELECT string_agg(row_ ->> name, '/' ORDER BY n)
          FROM unnest(columns) WITH ORDINALITY AS k(name, n));
CREATE FUNCTION audit.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  written audit.changes;
BEGIN
  IF TG_OP IN ('UPDATE', 'DELETE') THEN
    written.old_key := audit.key(to_jsonb(OLD), TG_ARGV[0]::text[]);
    written.old_values := ARRAY[{_DIGESTS.format("OLD")}];
  END IF;
  IF TG_OP IN ('UPDATE', 'INSERT') THEN
    written.new_key := audit.key(to_jsonb(NEW), TG_ARGV[0]::text[]);
    written.new_values := ARRAY[{_DIGESTS.format("NEW")}];
  END IF;
  INSERT INTO audit.changes (relation, op, old_key, new_key, old_values, new_values)
  VALUES (TG_TABLE_NAME, TG_OP, written.old_key, written.new_key,
          written.old_values, written.new_values);
  RETURN NULL;
END $$;
"""


def triggers(shape: Shape) -> str:
    """What has the table's changes noted."""
    key = ",".join(shape.key_columns)
    return (
        f"CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {shape.name} "
        f"FOR EACH ROW EXECUTE FUNCTION audit.note('{{{key}}}');\n"
        f"CREATE TRIGGER note_truncate AFTER TRUNCATE ON {shape.name} "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit.note();\n"
    )


def create_tables(connection: psycopg.Connection[Any]) -> None:
    """The tables of all shapes, audited."""
    connection.execute(DDL.encode())
    for shape in ALL_SHAPES:
        connection.execute((shape.ddl() + triggers(shape)).encode())


@dataclass(frozen=True, slots=True)
class Change:
    """One committed change of one key; the insert and the delete of a changed key are two."""

    op: str  # as the log has it: c, u, d or t
    before: Values | None  # what its row was, under whatever key
    after: Values | None  # what the key's row is then


def read_changes(connection: psycopg.Connection[Any]) -> dict[Place, list[Change]]:
    """Every key's committed changes in their true order, truncates among them."""
    rows = connection.execute(
        "SELECT relation, op, old_key, new_key, old_values, new_values "
        "FROM audit.changes ORDER BY seq"
    ).fetchall()
    return by_key(rows)


def by_key(rows: Iterable[tuple[Any, ...]]) -> dict[Place, list[Change]]:
    """The audit's rows, in their order, as each key's changes.

    A key that comes up after a truncate of its table has that truncate as well.
    """
    changes: dict[Place, list[Change]] = {}
    truncates: dict[str, int] = {}
    for relation, op, old_key, new_key, old, new in rows:
        if op == "TRUNCATE":
            truncates[relation] = truncates.get(relation, 0) + 1
            for (table, _), known in changes.items():
                if table == relation:
                    known.append(Change("t", None, None))
            continue
        for key, change in _of_keys(op, old_key, new_key, old, new):
            emptied = [Change("t", None, None)] * truncates.get(relation, 0)
            changes.setdefault((relation, key), emptied).append(change)
    return changes


def _of_keys(
    op: str, old_key: str, new_key: str, old: list[str] | None, new: list[str] | None
) -> list[tuple[str, Change]]:
    before = tuple(old) if old else None
    after = tuple(new) if new else None
    if op == "INSERT":
        return [(new_key, Change("c", None, after))]
    if op == "DELETE":
        return [(old_key, Change("d", before, None))]
    if old_key == new_key:
        return [(new_key, Change("u", before, after))]
    return [(old_key, Change("d", before, None)), (new_key, Change("c", before, after))]


def rows_after(changes: Mapping[Place, list[Change]]) -> dict[Place, Values]:
    """The rows that live in the end."""
    last = {place: known[-1].after for place, known in changes.items()}
    return {place: row for place, row in last.items() if row is not None}
