"""`cdclake quarantine`: refused events with their key, columns, values and reasons."""

from __future__ import annotations

from typing import Annotated

import typer

from cdclake.cli.output import JsonOption, emit, say


def quarantine(
    table: Annotated[
        str | None, typer.Argument(help="Table, by its lake or source name; default: all.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of events, the newest first.")] = 20,
    json_output: JsonOption = False,
) -> None:
    """Show the events in quarantine: key, and every reason with its column and value.

    The reasons are those of the file that runs now, so an event whose cause is fixed is shown as
    one that `cdclake replay` accepts. Values of masked columns are not shown.
    """
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.quarantined_events import quarantine_lines, quarantined_events

    answer = quarantined_events(open_lake(Home.from_environment()), table, limit)

    def render() -> None:
        for line in quarantine_lines(answer):
            say(line)

    emit(answer, json_output, render)
