"""`cdclake schema`: print the JSON Schema of the pipeline file."""

from __future__ import annotations

from typing import Annotated

import typer

from cdclake.cli.output import emit, say


def schema(
    json_output: Annotated[bool, typer.Option("--json", help="Print it on one line.")] = False,
) -> None:
    """Print the JSON Schema of the pipeline file, for editors and other tools."""
    from cdclake.config.schema import pipeline_schema, render_schema

    emit(pipeline_schema(), json_output, lambda: say(render_schema().rstrip("\n")))
