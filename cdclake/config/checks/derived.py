"""Checks of derived tables: their names, queries, keys and partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cdclake import naming
from cdclake.config import partition
from cdclake.config.checks.put_streams import put_tables
from cdclake.config.derived_sql import QueryFacts, SourceColumns, analyze
from cdclake.config.document import Document, Location
from cdclake.config.partial_model import TableOutline, try_parse
from cdclake.config.problems import Problem, Refused, did_you_mean

_SECTION = "derived"


def check_derived(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check each derived table against the pipeline's tables."""
    sources = [source for table in tables if (source := _source(table)) is not None]
    taken = {
        name: table.spelled
        for table in tables
        if table.name
        for name in naming.lake_objects(table.name)
    }
    taken |= put_tables(document)
    taken[naming.QUARANTINE] = "cdclake"
    for name, entry in document.mapping(_SECTION).items():
        place = (_SECTION, name)
        if name in taken:
            message = f"the lake already has {name!r}, of {taken[name]!r}"
            yield document.key_problem(place, message, "rename the derived table")
        sql = entry.get("sql") if isinstance(entry, dict) else None
        if not isinstance(sql, str):
            continue
        try:
            facts = analyze(sql, sources, _texts(entry, "key"))
        except Refused as refused:
            yield document.problem((*place, "sql"), refused.message, refused.remedy)
            continue
        yield from _check_columns(document, place, entry, facts)


def _check_columns(
    document: Document, place: Location, entry: Mapping[str, Any], facts: QueryFacts
) -> Iterator[Problem]:
    for index, column in enumerate(_texts(entry, "key")):
        if column not in facts.columns:
            yield _lacking(document, (*place, "key", index), column, facts)
    is_in_files = entry.get("format") in ("parquet", "json")
    for index, spelling in enumerate(_texts(entry, "partition_by")):
        at = (*place, "partition_by", index)
        transform = try_parse(partition.parse_transform, spelling)
        if transform is None:
            continue
        if transform.column not in facts.columns:
            yield _lacking(document, at, transform.column, facts)
        elif is_in_files and transform.kind != "identity":
            message = f"{spelling!r} is not a column: files are partitioned by columns only"
            yield document.problem(at, message, f"write `{transform.column}`, or `format: iceberg`")


def _lacking(document: Document, at: Location, column: str, facts: QueryFacts) -> Problem:
    message = f"the query's result has no column {column!r}"
    hint = did_you_mean(column, facts.columns)
    return document.problem(at, message, hint or f"its columns are {', '.join(facts.columns)}")


def _texts(entry: Mapping[str, Any], field: str) -> list[str]:
    listed = entry.get(field)
    return [item for item in listed if isinstance(item, str)] if isinstance(listed, list) else []


def _source(table: TableOutline) -> SourceColumns | None:
    if table.name is None:
        return None
    flowing = [column for column in table.columns if not column.excluded]
    key = tuple(column.name for _, name in table.key if (column := table.column(name)) is not None)
    return SourceColumns(table.name, key, tuple(column.name for column in flowing))
