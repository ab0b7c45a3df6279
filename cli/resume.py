"""`cdclake resume`: go on after a pause, and let stopped tables rejoin."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.output import emit, say


def resume(
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Start the stream again; a stopped table reads its gap from Kafka first."""
    from local import life
    from local.home import Home
    from local.lake import open_lake

    home = Home.from_environment()
    lake = open_lake(home)
    with home.changing():
        answer = life.resume(home, lake)
    emit(answer, json_output, lambda: _render(answer))


def _render(answer: dict[str, Any]) -> None:
    for table in answer["tables"]:
        say(f"{table['table']}: {table['did']}")
