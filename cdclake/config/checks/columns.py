"""Checks of keys, partitions and replica identities against the table's declared columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config import literals, partition
from cdclake.config.document import Document, Location
from cdclake.config.partial_model import TableOutline, try_parse
from cdclake.config.problems import Problem, Refused, did_you_mean
from cdclake.errors import APPLY_FILE


def check_key(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that the key's columns are declared, distinct, and reach the lake unchanged."""
    for table in _with_columns(tables):
        seen: set[str] = set()
        for location, name in table.key:
            column = table.column(name)
            if name in seen:
                message = f"the key of {table.spelled!r} names {name!r} twice"
                yield document.problem(location, message, "remove one of the two")
            elif column is None:
                yield _undeclared(document, table, location, name, "key")
            elif column.excluded:
                yield document.problem(
                    location,
                    f"the key column {name!r} of {table.spelled!r} is excluded",
                    "remove its `exclude`, or choose another key",
                )
            elif column.masked:
                yield document.problem(
                    location,
                    f"the key column {name!r} of {table.spelled!r} is masked",
                    "remove its `mask`, or choose another key: masked values may collide",
                )
            elif column.type is not None and column.type.collision:
                yield document.problem(
                    location,
                    f"the key column {name!r} of {table.spelled!r} is a {column.type.base}",
                    f"choose another key: {column.type.collision}",
                )
            seen.add(name)


def _with_columns(tables: Sequence[TableOutline]) -> Iterator[TableOutline]:
    """Yield the tables with columns: for the others, each of their names would be undeclared."""
    return (table for table in tables if table.columns)


def _undeclared(
    document: Document, table: TableOutline, location: Location, name: str, where: str
) -> Problem:
    hint = did_you_mean(name, [column.source for column in table.columns])
    return document.problem(
        location,
        f"the {where} of {table.spelled!r} names {name!r}, which `columns` does not declare",
        hint or f"declare it under `columns:`, or correct `{where}:`",
    )


def check_partitions(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that Iceberg supports each partition transform, and that none repeats."""
    for table in _with_columns(tables):
        seen: set[tuple[str, str]] = set()
        for location, spelling in table.texts("partition_by"):
            transform = try_parse(partition.parse_transform, spelling)
            if transform is None:
                continue
            if transform.family in seen:
                message = f"{spelling!r} partitions {transform.column!r} again"
                remedy = "keep one: the finer of two time transforms, or one width"
                yield document.problem(location, message, remedy)
            seen.add(transform.family)
            yield from _check_transform(document, table, location, transform)


def check_sorting(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that the columns that compaction sorts by are declared and reach the lake."""
    for table in _with_columns(tables):
        for location, name in table.texts("maintenance", "sort_by"):
            column = table.column(name)
            if column is None:
                yield _undeclared(document, table, location, name, "sort_by")
            elif column.excluded:
                message = f"sort_by of {table.spelled!r} names the excluded {column.source!r}"
                yield document.problem(location, message, "sort by a column that is not excluded")


def _check_transform(
    document: Document, table: TableOutline, location: Location, transform: partition.Transform
) -> Iterator[Problem]:
    column = table.column(transform.column)
    if column is None:
        yield _undeclared(document, table, location, transform.column, "partition_by")
        return
    if column.excluded:
        message = f"partition_by of {table.spelled!r} names the excluded {column.source!r}"
        yield document.problem(location, message, "partition by a column that is not excluded")
        return
    name = transform.field_name(column.name)
    flowing = {other.name for other in table.columns if not other.excluded}
    if transform.kind != "identity" and name in flowing:
        yield document.problem(
            location,
            f"Iceberg would name this partition {name!r}, like a column of {table.spelled!r}",
            "choose another transform",
        )
    if column.type is not None:
        try:
            transform.check_type(column.type)
            transform.check_values(column.type)
        except Refused as refused:
            yield document.problem(location, refused.message, refused.remedy)


def check_replica_identity(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse `full` with an excluded column: PostgreSQL would refuse the table's own updates."""
    for table in tables:
        spelling = table.entry.get("replica_identity")
        identity = try_parse(literals.parse_replica_identity, spelling)
        excluded = [column.source for column in table.columns if column.excluded]
        if identity is not None and identity.kind == "full" and excluded:
            yield document.problem(
                (*table.location, "replica_identity"),
                f"`full` with the excluded column {excluded[0]!r} would make every UPDATE and"
                f" DELETE of {table.spelled!r} fail in the source",
                "write `replica_identity: index NAME` (a unique index over the key), or remove each"
                " `exclude`",
            )


def check_renamed(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that an earlier name is unique, ignoring case, and not that of a key column.

    Another column may have it if that one is excluded: so it is declared that it does not flow.
    """
    for table in tables:
        key = {name for _, name in table.key}
        taken = {c.source.lower(): c.source for c in table.columns if not c.excluded}
        for column in table.columns:
            location = (*column.location, "renamed_from")
            if column.renamed_from and column.source in key:
                message = f"the key column {column.source!r} of {table.spelled!r} cannot be renamed"
                remedy = f"remove the table, {APPLY_FILE}, and add it again with another `name:`"
                yield document.problem(location, message, remedy)
            for name in column.renamed_from:
                other = taken.get(name.lower())
                if other is not None:
                    message = f"the earlier name {name!r} is also that of the column {other!r}"
                    remedy = f"remove this `renamed_from`, or the line of `{other}`"
                    yield document.problem(location, message, remedy)
                taken[name.lower()] = name
