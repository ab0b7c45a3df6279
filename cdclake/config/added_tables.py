"""Tables added to a pipeline file as text: comments, order and spelling of the rest stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode

from cdclake.config.file_edits import (
    BOM,
    end_of,
    end_of_line,
    newline_of,
    replace_valid,
    value_of,
)
from cdclake.config.yaml_reader import parse_document
from cdclake.errors import InputError

# Lines of each entry by its source table, indented by two spaces for their place under `tables:`.
AddedTables = Mapping[str, Sequence[str]]
_INDENT = 2


def add_tables(file: Path, added: AddedTables) -> None:
    """Add the entries after the last table of a valid pipeline file.

    Raises:
        InputError: if the file cannot hold them; it is unchanged
    """
    changed, named = with_tables(file.read_bytes().decode("utf-8"), added), ", ".join(added)
    if changed is None:
        raise InputError(
            f"cannot add {named} to {file}: its `tables:` are not a block of one entry per line",
            "write `tables:` with one table per line and run the command again, or add them"
            " yourself; `cdclake init -o OTHER` writes their lines into another file",
        )
    replace_valid(file, changed, named, "declare the tables yourself")


def with_tables(text: str, added: AddedTables) -> str | None:
    """Return the file's text with these tables; None if adding them changes anything else."""
    mark = BOM if text.startswith(BOM) else ""
    body = text.removeprefix(mark)
    tables = value_of(YAML(typ="safe", pure=True).compose(body), "tables")
    if not isinstance(tables, MappingNode) or not tables.value or tables.flow_style:
        return None
    indent = " " * (tables.value[0][0].start_mark.column - _INDENT)
    lines = [f"{indent}{line}" for entry in added.values() for line in entry]
    at, newline = end_of_line(body, end_of(body, tables.value[-1][1])), newline_of(body)
    changed = body[:at] + "".join(f"{newline}{line}" for line in lines) + body[at:]
    read, before = parse_document(changed), parse_document(body).values
    entries = parse_document("\n".join(["tables:", *(f" {line}" for line in lines)])).values
    expected = {**before, "tables": before["tables"] | entries["tables"]}
    is_added = len(entries["tables"].keys() - before["tables"].keys()) == len(added)
    return mark + changed if is_added and not read.problems and read.values == expected else None
