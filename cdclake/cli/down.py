"""`cdclake down`: stop the local lake."""

from __future__ import annotations

from typing import Annotated

import typer

from cdclake.cli.output import JsonOption, emit, say


def down(
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete the lake; keep the tables of the source.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Stop all components; keep the lake, which `up` continues."""
    from cdclake.local import lifecycle
    from cdclake.local.process.home import Home

    answer = lifecycle.down(Home.from_environment(), purge=purge)
    text = "stopped" if answer["stopped"] else "nothing was running"
    emit(answer, json_output, lambda: say(f"{text}{'; the lake is deleted' if purge else ''}"))
