"""Values of the rows that are erased, and those of them that other rows have as well."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cdclake import naming
from cdclake.debezium.event_parts import changelog_row, json_object, row_image
from cdclake.debezium.record_key import record_key
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.erasure.sought_values import CUT_CHARACTERS, SoughtValue
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.key_condition import in_changelog, in_state
from cdclake.plan import Column, Table
from cdclake.redrive.quarantined_records import is_of, may_be_of
from cdclake.trace.row_key import RowKey

_BATCH = 10_000
_DROPPED_NAME = re.compile(naming.dropped_column("", 1) + r"(?P<name>.+?)(?P<number>_[0-9]+)?")


def erased_values(reader: Reader, table: Table, keys: Sequence[RowKey]) -> set[tuple[str, str]]:
    """Return columns and texts of all values that the lake's tables have of these rows.

    They are those of the keys, too, whether or not the tables have the rows.
    """
    values = {(name, str(key.values[name])) for key in keys for name in table.key}
    names = reader.catalog.names()
    if not {table.name, table.changes} <= names:
        return values
    refused = [naming.QUARANTINE] if naming.QUARANTINE in names else []
    with reader.open([table], plain=refused) as session:
        for relation, condition in (
            (table.changes, in_changelog(keys)),
            (table.name, in_state(keys)),
        ):
            values |= set(_texts(session, relation, condition, table))
        if refused:
            values |= set(_refused_values(session, table, keys))
    return values


def sought_values(
    reader: Reader, table: Table, values: Iterable[tuple[str, str]]
) -> tuple[list[SoughtValue], list[str]]:
    """Return the values that only the erased rows had, and the columns of the others.

    Call it after the erasure: what the tables have then is of other rows. Another row's value may
    begin like an erased one, and a bound that is cut then tells nothing.
    """
    by_column: dict[str, list[str]] = {}
    for column, text in sorted(values):
        by_column.setdefault(column, []).append(text)
    sought, shared = [], []
    with reader.open([table]) as session:
        for column, texts in by_column.items():
            alike = _alike(session, table, column, texts)
            if any(alike.get(text) for text in texts):
                shared.append(column)
            sought += [
                SoughtValue(column, text, is_in_bounds=text not in alike)
                for text in texts
                if not alike.get(text)
            ]
    return sought, shared


def _alike(session: Any, table: Table, column: str, texts: list[str]) -> Mapping[str, bool]:
    """Return the texts whose beginning the tables have, and whether they have the whole text.

    A column that was dropped and declared again has its values in several columns: all count.
    Iceberg raises the last character of a cut maximum, and a bound does not say whether it is one:
    values also count as alike if their last compared characters are neighbours.
    """
    found: dict[str, bool] = {}
    last = CUT_CHARACTERS
    compared = [
        (DUCKDB.name(relation), DUCKDB.name(each))
        for relation in (table.changes, table.name)
        for each in _columns(session, relation, table)
        if _declared_names(each) & _declared_names(column)
    ]
    for relation, name in compared:
        rows = session.execute(
            f"SELECT v, bool_or(c = v) FROM (SELECT unnest(?::VARCHAR[]) AS v) AS s"
            f" JOIN (SELECT DISTINCT CAST({name} AS VARCHAR) AS c FROM {relation}"
            f" WHERE {name} IS NOT NULL) AS t"
            f" ON left(c, {last - 1}) = left(v, {last - 1})"
            f" AND abs(ord(c[{last}]) - ord(v[{last}])) <= 1 GROUP BY v",
            [texts],
        ).fetchall()
        for text, is_whole in rows:
            found[text] = found.get(text, False) or is_whole
    return found


def _texts(session: Any, relation: str, condition: str, table: Table) -> Iterator[tuple[str, str]]:
    columns = _columns(session, relation, table)
    selected = ", ".join(f"CAST({DUCKDB.name(name)} AS VARCHAR)" for name in columns)
    query = f"SELECT DISTINCT {selected} FROM {DUCKDB.name(relation)} WHERE {condition}"
    for row in session.execute(query).fetchall():
        for column, text in zip(columns, row, strict=True):
            if text:
                yield column, text


def _columns(session: Any, relation: str, table: Table) -> list[str]:
    """Return the relation's columns with the source's values, also those that left the file."""
    declared = {column.name for column in table.columns}
    described = session.execute(f"DESCRIBE {DUCKDB.name(relation)}").fetchall()
    return [
        name
        for name, kind, *_ in described
        if kind != "BOOLEAN" and (name in declared or naming.is_dropped_column(name))
    ]


def _declared_names(column: str) -> set[str]:
    """Return the names that the file may have had for a column, which may have left it."""
    found = _DROPPED_NAME.fullmatch(column)
    return {column} if found is None else {found["name"], found["name"] + (found["number"] or "")}


def _refused_values(
    session: Any, table: Table, keys: Sequence[RowKey]
) -> Iterator[tuple[str, str]]:
    """Yield the values in the quarantined records of these keys."""
    wanted = {tuple(key.parts) for key in keys}
    columns = [column for column in table.columns if not _is_flag(column)]
    names = {name: column.name for column in columns for name in (column.name, column.source)}
    query = (
        f'SELECT "table", topic, key, value FROM {naming.QUARANTINE}'
        f" WHERE {may_be_of(table, DUCKDB)}"
    )
    result = session.execute(query)
    while batch := result.fetchmany(_BATCH):
        for named, topic, key, value in batch:
            if not is_of(table, named, topic, value):
                continue
            found = record_key(table, key, value) or record_key(table, None, value) or ()
            if tuple(found) in wanted:
                yield from _image_values(value, names)


def _image_values(value: bytes | None, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield lake column and text of each value in a record; `names` are the columns' by name."""
    parsed = json_object(value)
    image = row_image(parsed) or changelog_row(parsed) or {}
    for name, each in image.items():
        if name in names and each is not None and not isinstance(each, bool) and each != "":
            yield names[name], str(each)


def _is_flag(column: Column) -> bool:
    return column.column_type.log == "boolean"
