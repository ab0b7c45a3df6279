"""Columns added to a pipeline file as text: comments, order and spelling of the rest stay."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode

from cdclake.config import literals
from cdclake.config.file_edits import (
    BOM,
    end_of,
    end_of_line,
    newline_of,
    replace_valid,
    value_of,
)
from cdclake.config.problems import Refused
from cdclake.config.yaml_reader import parse_document
from cdclake.errors import InputError
from cdclake.postgres.file_lines import scalar

AddedColumns = Mapping[tuple[str, str], Mapping[str, str]]  # type by (schema, table) and column


def add_columns(file: Path, added: AddedColumns) -> None:
    """Add each column with its type to its table's `columns:` in a valid pipeline file.

    Raise InputError, with the file unchanged, if it cannot be written, or not in this way.
    """
    changed = with_columns(file.read_bytes().decode("utf-8"), added)
    if changed is None:
        raise InputError(
            f"cannot add columns to {file}: its `columns:` are written in a way that cannot be"
            " changed without rewriting them (an alias, for example)",
            f"add them yourself: {_listed(added)}",
        )
    listed = _listed(added)
    replace_valid(file, changed, listed, f"add these lines yourself: {listed}")


def with_columns(text: str, added: AddedColumns) -> str | None:
    """Return the file's text with these columns; None if adding them changes anything else."""
    mark = BOM if text.startswith(BOM) else ""
    body = text.removeprefix(mark)
    changed, expected = body, copy.deepcopy(parse_document(body).values)
    edits = []
    for spelled, columns, types in _tables(YAML(typ="safe", pure=True).compose(body), added):
        edits.append(_edit(body, columns, types))
        expected["tables"][spelled]["columns"].update(types)
    for index, line in sorted(edits, reverse=True):
        changed = changed[:index] + line + changed[index:]
    read = parse_document(changed)
    is_same = len(edits) == len(added) and not read.problems and read.values == expected
    return mark + changed if is_same else None


def _tables(root: Any, added: AddedColumns) -> Iterator[tuple[str, MappingNode, dict[str, str]]]:
    """Yield the spelling, the node of `columns:` and the new columns of each table to change."""
    tables = value_of(root, "tables")
    for key, entry in tables.value if isinstance(tables, MappingNode) else ():
        columns = value_of(entry, "columns")
        types = added.get(_table_of(str(key.value)))
        if types and isinstance(columns, MappingNode) and columns.value:
            yield str(key.value), columns, dict(types)


def _table_of(spelled: str) -> tuple[str, str]:
    try:
        return literals.parse_table_key(spelled)
    except Refused:
        return "", ""


def _edit(text: str, columns: MappingNode, types: Mapping[str, str]) -> tuple[int, str]:
    """Return where to insert the columns after the last one, and their text."""
    end = end_of(text, columns.value[-1][1])
    if columns.flow_style:
        # A comma ends a plain scalar here, also that of numeric(12,2).
        return end, "".join(f", {scalar(name)}: {scalar(kind)}" for name, kind in types.items())
    newline = newline_of(text)
    indent = " " * columns.value[0][0].start_mark.column
    lines = (f"{newline}{indent}{scalar(name)}: {kind}" for name, kind in types.items())
    return end_of_line(text, end), "".join(lines)


def _listed(added: AddedColumns) -> str:
    return "; ".join(
        f"`{scalar(column)}: {kind}` to {schema}.{table}"
        for (schema, table), types in added.items()
        for column, kind in types.items()
    )
