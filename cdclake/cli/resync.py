"""`cdclake resync`: read a table from the source again while all tables keep streaming."""

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
    table: Annotated[
        str, typer.Argument(help="The table, by its name in the lake or in the source.")
    ],
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Request the resync and return; the stream completes it."),
    ] = False,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Read every row of a table again, and remove rows from the lake that the source lacks."""
    from cdclake import naming

    if target is Target.AWS:
        if no_wait:
            raise InputError(
                "--no-wait applies to the local lake only",
                "interrupt the command instead; the job continues",
            )
        answer = deployed_job(file, environment, naming.OPERATE_JOB).operate("resync", [table])
    else:
        check_local(file, environment)
        answer = _resync_here(table, no_wait)
    emit(answer, json_output, lambda: _render(answer))
    if not answer["ok"]:
        raise typer.Exit(4)


def _resync_here(table: str, no_wait: bool) -> dict[str, Any]:
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.operations_backend import local_operations, to_json
    from cdclake.local.process.home import Home

    lake = open_lake(Home.from_environment())
    chosen = lake.plan.streamed(table)
    return to_json({chosen.name: local_operations(lake).resync(chosen, wait=not no_wait)})


def _render(answer: dict[str, Any]) -> None:
    for table in answer["tables"]:
        say(f"{table['table']}: {table['did']}")
