"""Checks of put tables: columns, keys, partitions, and the folders of their transforms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from cdclake import naming
from cdclake.config import literals, partition
from cdclake.config.document import Document, Location
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem, Refused, did_you_mean
from cdclake.config.puts_model import PutsEntry
from cdclake.config.resolve_firehose import puts_settings
from cdclake.debezium.types import ColumnType
from cdclake.firehose.stream import ARRIVED_AT
from cdclake.puts.put_table import TRANSFORM

_SECTION = "puts"
_KINDS = ("identity", "year", "month", "day", "hour")
_ARRIVED_AT = ColumnType("timestamptz")


def check_columns(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check each put table's columns, key and partitions."""
    del tables
    for name, entry in put_entries(document).items():
        place = (_SECTION, name)
        yield from _check_names(document, place, entry)
        for index, field in enumerate(entry.key):
            if field not in entry.columns:
                yield _undeclared(document, (*place, "key", index), field, entry.columns)
        yield from _check_partitions(document, place, entry)


def check_folders(document: Document, folder: Path) -> Iterator[Problem]:
    """Check that each transform's folder exists in the pipeline file's folder, with its handler."""
    for name, entry in put_entries(document).items():
        if entry.transform is None:
            continue
        place = (_SECTION, name, "transform")
        if not (folder / entry.transform / TRANSFORM).is_file():
            yield document.problem(
                place,
                f"there is no {TRANSFORM} in {folder / entry.transform}",
                "create it, with a function `handler(event, context)`; the path is relative to"
                " the pipeline file",
            )


def put_entries(document: Document) -> dict[str, PutsEntry]:
    """Return the valid put tables by name."""
    found = {}
    for name, raw in document.mapping(_SECTION).items():
        try:
            found[name] = puts_settings(document.mapping("firehose"), raw)
        except (ValidationError, AttributeError, TypeError):
            continue
    return found


def _check_names(document: Document, place: Location, entry: PutsEntry) -> Iterator[Problem]:
    taken = {ARRIVED_AT: "the time of arrival"}
    for field in entry.columns:
        name = naming.lake_name(field)
        if name in taken:
            message = f"the column {name!r} would also be that of {taken[name]}"
            remedy = "rename the field, for instance in a `transform:`"
            yield document.key_problem((*place, "columns", field), message, remedy)
        taken[name] = repr(field)


def _check_partitions(document: Document, place: Location, entry: PutsEntry) -> Iterator[Problem]:
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
        seen.add(transform.family)


def _undeclared(
    document: Document, at: Location, field: str, known: Mapping[str, object]
) -> Problem:
    remedy = did_you_mean(field, known) or f"declare `{field}` under `columns:`"
    return document.problem(at, f"`columns` does not declare {field!r}", remedy)
