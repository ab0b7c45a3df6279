"""Write docs/reference/pipeline-file.md and docs/reference/commands.md from the code.

`python -m scripts.reference_pages` writes both; a unit test fails while either is out of date.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cdclake.cli.main import commands
from cdclake.config.schema import pipeline_schema

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
Schema = Mapping[str, Any]

# Sections that override `firehose`.
_SHARING = {"firehose.domains.NAME", "puts.NAME", "weblogs.NAME"}

_FILE_HEAD = """# The pipeline file

Made from the JSON Schema by `make docs`; do not edit it. `cdclake schema` prints the schema, and
[pipelines/pipeline.schema.json](../../pipelines/pipeline.schema.json) gives completion to editors.
`cdclake validate FILE` checks more than the schema can, offline. Complete files:
[shop.yaml](../../pipelines/shop.yaml), [pagila.yaml](../../pipelines/pagila.yaml),
[weblogs.yaml](../../pipelines/weblogs.yaml), [puts.yaml](../../pipelines/puts.yaml). The file never
contains a password.

`NAME` is a name that you choose. `environments: NAME:` overlays the other sections for one
environment of the deployment; the local lake ignores environments.
"""

_COMMANDS_HEAD = """# Commands

Made from the command line's own help by `make docs`; do not edit it. Every command takes `--help`.
With `--json` it prints one JSON object on standard output; a failure is
`{"ok": false, "error": {code, message, remedy, ...}}`.
[Exit codes](../how-to/troubleshooting.md). `CDCLAKE_HOME` is the folder of the lake, and
`CDCLAKE_SOURCE_DSN` stands in for `up --source`.
"""


def pipeline_file_page() -> str:
    """Return the page of the pipeline file: a section per top-level key, a row per setting."""
    schema = pipeline_schema()
    scalars: list[Row] = []
    sections: list[str] = []
    for name, entry in schema["properties"].items():
        section, *settings = _settings(schema, name, entry, is_required=name in schema["required"])
        if not settings:
            scalars.append(section)
        elif name != "environments":
            about = [f"{section.meaning}\n"] if section.meaning else []
            sections += [f"## {name}\n", *about, *_table(settings, f"{name}."), ""]
    return "\n".join([_FILE_HEAD, "## Top level\n", *_table(scalars), "", *sections])


class Row(NamedTuple):
    """One setting of the pipeline file."""

    path: str
    default: str
    values: str
    meaning: str


def _table(rows: list[Row], prefix: str = "") -> Iterator[str]:
    yield "| key | default | other values | meaning |"
    yield "|---|---|---|---|"
    for row in rows:
        cells = (f"`{row.path.removeprefix(prefix)}`", row.default, row.values, row.meaning)
        yield "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def _settings(
    schema: Schema, path: str, entry: Schema, *, is_required: bool = False, inherits: bool = False
) -> Iterator[Row]:
    """Yield the row of a key, and of every key below it.

    Settings that a domain or web logs share with `firehose` take their default from there
    (`inherits`).
    """
    named, mapping = _named(schema, entry), _mapping(schema, entry)
    meaning = entry.get("description") or named.get("description", "")
    default = _default(entry, is_required=is_required, inherits=inherits)
    values = _values(entry, None if inherits else entry.get("default"))
    yield Row(path, default, values, " ".join(meaning.split()).replace("|", "\\|"))
    for name, below in mapping.get("properties", {}).items():
        yield from _settings(
            schema,
            f"{path}.{name}",
            below,
            is_required=name in mapping.get("required", ()),
            inherits=inherits or (path in _SHARING and name in _shared(schema)),
        )
    each = mapping.get("additionalProperties")
    if isinstance(each, dict) and each.get("$ref") != "#/$defs/JsonValue":
        yield from _settings(schema, f"{path}.NAME", each)


def _shared(schema: Schema) -> Collection[str]:
    firehose: Collection[str] = schema["$defs"]["Firehose"]["properties"].keys()
    return firehose


def _named(schema: Schema, entry: Schema) -> Schema:
    """Return the definition that an entry, also an optional one, refers to; else the entry."""
    for option in (entry, *entry.get("anyOf", ())):
        if "$ref" in option:
            found: Schema = schema["$defs"][option["$ref"].rpartition("/")[2]]
            return found
    return entry


def _mapping(schema: Schema, entry: Schema) -> Schema:
    """Return the mapping that the entry allows; an empty one if it allows none."""
    named = _named(schema, entry)
    for option in (named, *named.get("anyOf", ())):
        if "properties" in option or isinstance(option.get("additionalProperties"), dict):
            mapping: Schema = option
            return mapping
    return {}


def _default(entry: Schema, *, is_required: bool, inherits: bool) -> str:
    if is_required:
        return "required"
    value = entry.get("default")
    if value is None or isinstance(value, dict):
        return ""
    return "that of `firehose`" if inherits else f"`{_yaml(value)}`"


def _values(entry: Schema, default: object) -> str:
    """Return the allowed values other than the default."""
    options = [value for part in (entry, *entry.get("anyOf", ())) for value in part.get("enum", ())]
    others = [value for value in options if value not in (None, default)]
    return ", ".join(f"`{_yaml(value)}`" for value in others)


def _yaml(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def commands_page() -> str:
    """Return the page of the commands: usage, description and options of each."""
    lines = [_COMMANDS_HEAD]
    for name, command in commands().items():
        shown = [each for each in command.params if each.name not in ("help", "json_output")]
        lines += [f"## {name}\n", "```", _usage(name, shown), "```\n"]
        lines += [" ".join(part.split()) + "\n" for part in command.help.split("\n\n")]
        if options := [each for each in shown if each.param_type_name == "option"]:
            lines += ["| option | default | meaning |", "|---|---|---|"]
            lines += [_option_row(each) for each in options]
            lines.append("")
    return "\n".join(lines)


def _usage(name: str, params: list[Any]) -> str:
    """Return the command with its arguments and required options."""
    words = [f"cdclake {name}"]
    for each in params:
        if each.param_type_name == "argument":
            shown = each.name.upper()
        elif each.required:
            shown = f"{each.opts[-1]} {each.name.upper().replace('_', '-')}"
        else:
            continue
        words.append(shown if each.required else f"[{shown}]")
    return " ".join(words)


def _option_row(option: Any) -> str:
    names = ", ".join(f"`{each}`" for each in option.opts)
    default = option.default
    is_set = isinstance(default, str | int | float) and not option.is_flag
    shown = f"`{getattr(default, 'value', default)}`" if is_set else ""
    return f"| {names} | {shown} | {option.help} |".replace("|  |", "| |")


PAGES = {"pipeline-file.md": pipeline_file_page, "commands.md": commands_page}


if __name__ == "__main__":
    for file, page in PAGES.items():
        (FOLDER / file).write_text(page(), encoding="utf-8")
