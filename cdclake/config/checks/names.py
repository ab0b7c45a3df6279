"""Checks of name collisions in the lake, in Kafka and in the source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake import naming
from cdclake.config import literals
from cdclake.config.document import Document
from cdclake.config.partial_model import ColumnOutline, TableOutline
from cdclake.config.problems import Problem, Refused


def check_table_keys(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that each key of `tables` is valid and names a different table."""
    seen: dict[tuple[str, str], TableOutline] = {}
    for spelled in document.mapping("tables"):
        try:
            literals.parse_table_key(spelled)
        except Refused as refused:
            place = ("tables", spelled)
            yield document.key_problem(place, refused.message, refused.remedy)
    for table in tables:
        if table.schema is None or table.table is None:
            continue
        first = seen.setdefault((table.schema, table.table), table)
        if first is not table:
            yield document.key_problem(
                table.location,
                f"{table.spelled!r} and {first.spelled!r} are the same table",
                "remove one of the two",
            )


def check_lake_names(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that no lake object has the name of another table's object, or a reserved one."""
    owners: dict[str, TableOutline] = {}
    taken = {name for table in tables if table.name for name in naming.lake_objects(table.name)}
    for table in tables:
        if table.name is None:
            continue
        named = "name" in table.entry
        place = (*table.location, "name") if named else table.location
        remedy = f"add `name: {_free_name(table, taken)}` to {table.spelled!r}"
        if named:
            remedy = f"write `name: {_free_name(table, taken)}` instead"
        if table.name == naming.QUARANTINE:
            message = f"{table.spelled!r} would be {table.name!r} in the lake, which is reserved"
            yield document.key_problem(place, message, remedy)
            continue
        met = [name for name in naming.lake_objects(table.name) if name in owners]
        if met:
            other = owners[met[0]]
            yield document.key_problem(
                place,
                f"{table.spelled!r} and {other.spelled!r} would both have {met[0]!r} in the lake",
                remedy,
            )
            continue
        owners.update(dict.fromkeys(naming.lake_objects(table.name), table))


def _free_name(table: TableOutline, taken: set[str]) -> str:
    """Return an unused name, built from the source's schema and table."""
    base = naming.lake_name(f"{table.schema or 'source'}_{table.table or table.name}")
    for suffix in naming.DERIVED_SUFFIXES:
        base = f"{base}_table" if base.endswith(suffix) else base
    names = [base, *(f"{base}_{n}" for n in range(2, len(taken) + 3))]
    return next(name for name in names if not taken.intersection(naming.lake_objects(name)))


def check_topics(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that every table has a different topic."""
    pipeline = document.get("name")
    prefix = pipeline if isinstance(pipeline, str) else "pipeline"
    seen: dict[str, TableOutline] = {}
    for table in tables:
        if table.schema is None or table.table is None:
            continue
        topic = naming.topic_name(prefix, table.schema, table.table)
        first = seen.setdefault(topic, table)
        if first is table or (first.schema, first.table) == (table.schema, table.table):
            continue
        yield document.key_problem(
            table.location,
            f"{table.spelled!r} and {first.spelled!r} would share the topic {topic!r}",
            "move one of the two tables to another pipeline file, or rename it in the source:"
            " Debezium replaces characters that Kafka does not allow with `_`",
        )


def check_column_names(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that each column that flows has a distinct, unreserved name in the lake."""
    for table in tables:
        seen: dict[str, ColumnOutline] = {}
        for column in table.columns:
            try:
                literals.check_source_name(column.source)
            except Refused as refused:
                yield document.key_problem(column.location, refused.message, refused.remedy)
                continue
            if column.excluded:
                continue
            if naming.is_reserved_column(column.name):
                yield document.key_problem(
                    column.location,
                    f"the column {column.source!r} would be {column.name!r} in the lake, which is"
                    " reserved",
                    f"add `{column.source}: {{exclude: true}}`, or rename it in the source",
                )
            first = seen.setdefault(column.name, column)
            if first is not column:
                yield document.key_problem(
                    column.location,
                    f"the columns {first.source!r} and {column.source!r} of {table.spelled!r} would"
                    f" both be {column.name!r} in the lake",
                    _collision_remedy(table, column, first),
                )


def _collision_remedy(table: TableOutline, column: ColumnOutline, first: ColumnOutline) -> str:
    differ_by_case = first.source.lower() == column.source.lower()
    if differ_by_case and not table.is_polled:  # Debezium refuses them before it excludes any
        return (
            f"rename `{column.source}` in the source: the connector streams no table whose columns"
            " differ only by case; or poll it: `capture: {poll: ...}`"
        )
    return f"write `{column.source}: {{exclude: true}}` here, or rename it in the source"
