"""`cdclake resync`: read a table of the source again while everything flows."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.output import emit, say


def resync(
    table: Annotated[str, typer.Argument(help="The table, by its name in the lake or source.")],
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Ask for it and return; the stream finishes it.")
    ] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Read every row of a table again, and remove from the lake what the source does not have."""
    from local import repair
    from local.home import Home
    from local.lake import open_lake

    lake = open_lake(Home.from_environment())
    chosen = repair.chosen(lake, table)
    repair.check_flowing(lake)
    repair.rejoin_after_loss(lake, chosen)
    request = repair.ask_resync(lake, chosen)
    answer = repair.resync(lake, chosen, request, wait=not no_wait)
    emit(answer, json_output, lambda: say(f"{chosen.name}: {answer['tables'][0]['did']}"))
