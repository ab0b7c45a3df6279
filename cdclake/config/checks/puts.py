"""Checks of put tables: routes, columns, keys, partitions, and the folders of transforms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from cdclake import naming
from cdclake.config import literals, partition
from cdclake.config.document import Document, Location
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem, Refused, did_you_mean
from cdclake.config.puts_model import PutColumns, PutsEntry
from cdclake.config.resolve_firehose import puts_settings
from cdclake.debezium.types import ColumnType
from cdclake.firehose.stream import ARRIVED_AT
from cdclake.puts.put_table import TRANSFORM

_SECTION = "puts"
_KINDS = ("identity", "year", "month", "day", "hour")
_ARRIVED_AT = ColumnType("timestamptz")
_TEXT = ColumnType("text")
_RENAME = "rename the field, for instance in a `transform:`"


def check_columns(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check each put table's columns, key and partitions."""
    del tables
    for name, entry in put_entries(document).items():
        for place, table in _tables_of((_SECTION, name), entry):
            if not table.columns:
                remedy = "add `columns:`, or `route:` and `tables:` for several tables"
                yield document.problem(place, "`columns` is missing", remedy)
            yield from _check_names(document, place, table)
            for index, field in enumerate(table.key):
                if field not in table.columns:
                    yield _undeclared(document, (*place, "key", index), field, table.columns)
            yield from _check_partitions(document, place, table)


def check_put_routes(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that each value of a route selects one table, and that its field can have it."""
    del tables
    for name, entry in put_entries(document).items():
        place = (_SECTION, name)
        if entry.tables is None:
            if entry.route is not None:
                remedy = "add `tables:`, with `columns:` for each, or remove `route:`"
                yield document.problem((*place, "route"), "`tables` is missing", remedy)
            continue
        if entry.route is None:
            remedy = "add `route: FIELD`, whose value selects the table of a record"
            yield document.problem((*place, "tables"), "`route` is missing", remedy)
        for setting in PutColumns.model_fields:
            if setting in document.mapping(*place):
                message = f"with `tables:` each table has its own `{setting}`"
                yield document.key_problem((*place, setting), message, "move it into `tables:`")
        yield from _check_values(document, place, entry)


def _check_values(document: Document, place: Location, entry: PutsEntry) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for name, table in (entry.tables or {}).items():
        at = (*place, "tables", name)
        for index, value in enumerate(table.values or [name]):
            if value in taken:
                message = f"the value {value!r} also selects {taken[value]!r}"
                remedy = "write different `values:` for each table"
                yield document.key_problem((*at, "values", index), message, remedy)
            taken[value] = name
        spelled = table.columns.get(entry.route or "", "text")
        if literals.parse_column_type(spelled) != _TEXT:
            message = f"{entry.route!r} selects the table by a text, but is {spelled}"
            remedy = "write `text`, or name another field as `route:`"
            yield document.problem((*at, "columns", entry.route or ""), message, remedy)


def check_folders(document: Document, folder: Path) -> Iterator[Problem]:
    """Check that each transform's folder exists in the pipeline file's folder, with its handler."""
    for name, entry in put_entries(document).items():
        if entry.transform is None:
            continue
        place = (_SECTION, name, "transform")
        if not _is_file(folder / entry.transform / TRANSFORM):
            yield document.problem(
                place,
                f"there is no {TRANSFORM} in {folder / entry.transform}",
                "create it, with a function `handler(event, context)`; the path is relative to"
                " the pipeline file",
            )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have, or a folder that is closed
        return False


def put_entries(document: Document) -> dict[str, PutsEntry]:
    """Return the valid put tables by name."""
    found = {}
    for name, raw in document.mapping(_SECTION).items():
        try:
            found[name] = puts_settings(document.mapping("firehose"), raw)
        except (ValidationError, AttributeError, TypeError):
            continue
    return found


def _tables_of(place: Location, entry: PutsEntry) -> list[tuple[Location, PutColumns]]:
    """Return the declared tables with their places; without `tables:` the entry is the only one."""
    if entry.tables is None:
        return [] if entry.route else [(place, entry)]
    return [((*place, "tables", name), table) for name, table in entry.tables.items()]


def _check_names(document: Document, place: Location, entry: PutColumns) -> Iterator[Problem]:
    taken = {ARRIVED_AT: "the time of arrival"}
    for field in entry.columns:
        name = naming.lake_name(field)
        if naming.is_reserved_column(name):
            message = f"the column {field!r} would be {name!r} in the lake, which is reserved"
            yield document.key_problem((*place, "columns", field), message, _RENAME)
        if name in taken:
            message = f"the column {name!r} would also be that of {taken[name]}"
            yield document.key_problem((*place, "columns", field), message, _RENAME)
        taken[name] = repr(field)


def _check_partitions(document: Document, place: Location, entry: PutColumns) -> Iterator[Problem]:
    types = {field: literals.parse_column_type(t) for field, t in entry.columns.items()}
    types[ARRIVED_AT] = _ARRIVED_AT
    seen: set[tuple[str, str]] = set()
    for index, spelling in enumerate(entry.partition_by):
        at = (*place, "partition_by", index)
        transform = partition.parse_transform(spelling)
        if transform.kind not in _KINDS:
            message = f"put tables cannot be partitioned by {transform.kind}()"
            yield document.problem(at, message, "use a column, or its year, month, day or hour")
        elif transform.column not in types:
            yield _undeclared(document, at, transform.column, types)
        elif transform.family in seen:
            message = f"{spelling!r} partitions {transform.column!r} again"
            yield document.problem(at, message, "keep the finer of the two")
        else:
            try:
                transform.check_type(types[transform.column])
            except Refused as refused:
                yield document.problem(at, refused.message, refused.remedy)
            yield from _check_field_name(document, place, entry, transform)
        seen.add(transform.family)


def _check_field_name(
    document: Document, place: Location, entry: PutColumns, transform: partition.Transform
) -> Iterator[Problem]:
    """Check that Iceberg does not name the partition, also a default one, like a column."""
    name = transform.field_name(naming.lake_name(transform.column))
    spelling = transform.render(transform.column)
    for field in entry.columns:
        if transform.kind != "identity" and naming.lake_name(field) == name:
            message = f"Iceberg would name the partition by {spelling} {name!r}, too"
            remedy = f"{_RENAME}, or choose another transform in `partition_by:`"
            yield document.key_problem((*place, "columns", field), message, remedy)


def _undeclared(
    document: Document, at: Location, field: str, known: Mapping[str, object]
) -> Problem:
    remedy = did_you_mean(field, known) or f"declare `{field}` under `columns:`"
    return document.problem(at, f"`columns` does not declare {field!r}", remedy)
