"""`cdclake resume`: go on after a pause, and let stopped tables rejoin."""

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
    """Start the stream again; a stopped table reads its gap from Kafka first.

    On AWS, where nobody pauses the stream, stopped tables are asked to rejoin.
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
    from cdclake.local import lifecycle
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home

    home = Home.from_environment()
    lake = open_lake(home)
    with home.changing():
        return lifecycle.resume(home, lake)


def _render(answer: dict[str, Any]) -> None:
    for table in answer["tables"]:
        say(f"{table['table']}: {table['did']}")
