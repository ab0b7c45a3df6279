"""`cdclake resume`: start a paused stream, and let stopped tables rejoin."""

from __future__ import annotations

from typing import Any

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


def resume(
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Start a paused stream; let stopped tables read their gap from Kafka and rejoin.

    A deployed stream is never paused: with --target aws only stopped tables are affected.
    """
    from cdclake import naming

    if target is Target.AWS:
        answer = deployed_job(file, environment, naming.OPERATE_JOB).operate("resume", [])
    else:
        check_local(file, environment)
        answer = _resume_here()
    emit(answer, json_output, lambda: _render(answer))
    if not answer["ok"]:
        raise typer.Exit(4)


def _resume_here() -> dict[str, Any]:
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.operations_backend import local_operations, to_json
    from cdclake.local.process.home import Home

    home = Home.from_environment()
    lake = open_lake(home)
    with home.changing():
        return to_json(local_operations(lake).resume(lake.plan.tables))


def _render(answer: dict[str, Any]) -> None:
    for table in answer["tables"]:
        say(f"{table['table']}: {table['did']}")
