"""`cdclake schema`: print the JSON Schema of the pipeline file, or the reference of one key."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cdclake.cli.output import emit, say


def schema(
    doc: Annotated[
        str | None,
        typer.Option(
            "--doc",
            metavar="KEY",
            help="Print type, default, meaning and an example of this key instead: its path, as in"
            " policies.new_columns, or its unique end.",
        ),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print it on one line.")] = False,
) -> None:
    """Print the JSON Schema of the pipeline file, for editors and other tools."""
    from cdclake.config.key_reference import find_key
    from cdclake.config.schema import pipeline_schema, render_schema

    if doc is None:
        emit(pipeline_schema(), json_output, lambda: say(render_schema().rstrip("\n")))
        return
    answer = {"ok": True, **find_key(doc).to_json()}
    emit(answer, json_output, lambda: _render(answer))


def _render(answer: dict[str, Any]) -> None:
    say(answer["key"])
    say(f"  type     {answer['type']}")
    say(f"  default  {answer['default'] or 'none'}")
    say(f"  meaning  {answer['meaning']}")
    say("  example")
    for line in answer["example"].splitlines():
        say(f"    {line}")
