"""Write docs/pipeline.md and docs/reference/commands.md from the code.

`python -m scripts.reference_pages` writes both; a unit test fails while either is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from cdclake.cli.examples import example_lines
from cdclake.cli.main import commands
from cdclake.config.key_examples import FOLDER as EXAMPLES
from cdclake.config.key_examples import example_of
from cdclake.config.key_reference import DocumentedKey, documented_keys

FOLDER = Path(__file__).resolve().parents[1] / "docs"
_MAX_EXAMPLE_WIDTH = 72

_FILE_HEAD = """# The pipeline file

Made from the JSON Schema by `make docs`; do not edit it. `cdclake schema` prints the schema, and
[pipelines/pipeline.schema.json](../pipelines/pipeline.schema.json) gives completion to editors.
`cdclake validate FILE` checks more than the schema can, offline. Complete files:
[shop.yaml](../pipelines/shop.yaml), [pagila.yaml](../pipelines/pagila.yaml),
[weblogs.yaml](../pipelines/weblogs.yaml), [puts.yaml](../pipelines/puts.yaml). The file never
contains a password.

`NAME` is a name that you choose, `[]` each entry of a list. An empty default means that the setting
is off, or that its meaning names the default. Each example is part of a file in `pipelines/` or
`pipelines/reference/`, which a test validates.
`cdclake schema --doc KEY` prints one of these rows, with its example as lines to copy:
`cdclake schema --doc policies.new_columns`.

`environments: NAME:` overlays every other section for one environment of the deployment, key by
key; a list replaces that of the file, and no key of the file can be removed. The local lake ignores
environments.
"""

_COMMANDS_HEAD = """# Commands

Made from the command line's own help by `make docs`; do not edit it. Every command takes `--help`.
With `--json` it prints one JSON object on standard output; a failure is
`{"ok": false, "error": {code, message, remedy, ...}}`.
[Exit codes](../how-to/troubleshooting.md).
A FILE may also be written as `--file FILE`, as the commands spell it that take other arguments.

Without a command: `--version` (with `--json` as `{"ok": true, "version": ...}`),
`--install-completion` for your shell, `--show-completion`.

## Environment variables

| variable | holds | default |
|---|---|---|
| `CDCLAKE_HOME` | folder of the local lake | `.cdclake` in the clone or in your project |
| `CDCLAKE_SOURCE_DSN` | the source's DSN with its password, for every command that takes one | |
| `CDCLAKE_CACHE` | an installation's jars, the demo's downloads | in the platform's cache folder |
| `CDCLAKE_MAVEN_MIRROR` | base URL of the jars that an installation fetches | Maven Central |
| `CDCLAKE_PAGILA`, `CDCLAKE_MOMA` | folder of a database for `demo --database` | |
"""


def pipeline_page() -> str:
    """Return the page of the pipeline file: a section per top-level key, a row per setting."""
    scalars: list[DocumentedKey] = []
    sections: list[str] = []
    for name, group in groupby(documented_keys(), lambda key: re.split(r"[.\[]", key.path)[0]):
        section, *settings = group
        if not settings:
            scalars.append(section)
        else:
            about = [f"{section.meaning}\n"] if section.meaning else []
            sections += [f"## {name}\n", *about, *_table(settings, f"{name}."), ""]
    return "\n".join([_FILE_HEAD, "## Top level\n", *_table(scalars), "", *sections])


def _table(keys: list[DocumentedKey], prefix: str = "") -> Iterator[str]:
    yield "| key | type | default | meaning | example |"
    yield "|---|---|---|---|---|"
    for key in keys:
        name, meaning = f"`{key.path.removeprefix(prefix)}`", key.meaning.replace("|", "\\|")
        cells = (name, key.type, key.default, meaning, _example(key))
        yield "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def _example(key: DocumentedKey) -> str:
    found = example_of(key.path)
    if found is None:
        raise ValueError(f"no file in {EXAMPLES} has the key {key.path}")
    line = found.inline()
    is_section = isinstance(found.value, dict | list)
    return "its keys below" if is_section and len(line) > _MAX_EXAMPLE_WIDTH else f"`{line}`"


def commands_page() -> str:
    """Return the page of the commands: usage, description and options of each."""
    lines = [_COMMANDS_HEAD]
    for name, command in commands().items():
        shown = [each for each in command.params if each.name not in ("help", "json_output")]
        lines += [f"## {name}\n", "```", _usage(name, shown), "```\n"]
        lines += [" ".join(part.split()) + "\n" for part in command.help.split("\n\n")]
        if examples := example_lines(name):
            lines += ["```sh", *examples, "```\n"]
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


PAGES = {"pipeline.md": pipeline_page, "reference/commands.md": commands_page}


if __name__ == "__main__":
    for file, page in PAGES.items():
        (FOLDER / file).write_text(page(), encoding="utf-8")
