"""`cdclake down`: stop the local lake."""

from __future__ import annotations

from typing import Annotated

import typer

from cdclake.cli.output import JsonOption, emit, say


def down(
    purge: Annotated[
        bool, typer.Option("--purge", help="Forget the lake; the source's own tables stay.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Stop everything; the lake stays as it is and `up` goes on with it."""
    from cdclake.local import lifecycle
    from cdclake.local.process.home import Home

    answer = lifecycle.down(Home.from_environment(), purge=purge)
    text = "stopped" if answer["stopped"] else "nothing was running"
    emit(answer, json_output, lambda: say(f"{text}{'; the lake is forgotten' if purge else ''}"))
