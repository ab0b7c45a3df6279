"""`cdclake quarantine`: refused events with their key, columns, values and reasons."""

from __future__ import annotations

from typing import Annotated

import typer

from cdclake.activity import step
from cdclake.cli.output import JsonOption, emit, say_all
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    quarantine_of,
)


def quarantine(
    table: Annotated[
        str | None, typer.Argument(help="Table, by its lake or source name; default: all.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of events, the newest first.")] = 20,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Show the events in quarantine: key, and every reason with its column and value.

    The reasons are those of the file that runs now, so an event whose cause is fixed is shown as
    one that `cdclake replay` accepts. Values of masked columns are not shown.
    """
    from cdclake.local.quarantined_events import quarantine_lines, quarantined_events

    with step("read the quarantine"), quarantine_of(target, file, environment) as found:
        answer = quarantined_events(found, table, limit)
    emit(answer, json_output, lambda: say_all(quarantine_lines(answer)))
