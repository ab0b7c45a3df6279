"""`cdclake resync`: read a table of the source again while everything flows."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_job,
)
from cdclake.errors import InputError


def resync(
    table: Annotated[str, typer.Argument(help="The table, by its name in the lake or source.")],
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Ask for it and return; the stream finishes it.")
    ] = False,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Read every row of a table again, and remove from the lake what the source does not have."""
    from cdclake import naming

    if target is Target.AWS:
        if no_wait:
            raise InputError(
                "--no-wait is of the local lake", "end this command instead: the job goes on"
            )
        answer = deployed_job(file, environment, naming.OPERATE_JOB).operate("resync", [table])
    else:
        check_local(file, environment)
        answer = _resync_here(table, no_wait)
    emit(answer, json_output, lambda: _render(answer))
    if not answer["ok"]:
        raise typer.Exit(4)


def _resync_here(table: str, no_wait: bool) -> dict[str, Any]:
    from cdclake.local import operations_backend
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home

    lake = open_lake(Home.from_environment())
    chosen = lake.plan.streamed(table)
    operations_backend.check_flowing(lake)
    operations_backend.rejoin_after_loss(lake, chosen)
    request = operations_backend.ask_resync(lake, chosen)
    return operations_backend.resync(lake, chosen, request, wait=not no_wait)


def _render(answer: dict[str, Any]) -> None:
    for table in answer["tables"]:
        say(f"{table['table']}: {table['did']}")
