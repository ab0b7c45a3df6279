"""`cdclake resume`: start a paused stream, and let stopped tables rejoin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cdclake.cli.output import JsonOption, emit_outcome, say_all
from cdclake.cli.table_answers import VerboseOption, did_lines, tables_failure
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_file,
)


def resume(
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    verbose: VerboseOption = False,
    json_output: JsonOption = False,
) -> None:
    """Resume a paused stream and stopped tables, from the Kafka offsets where they stopped.

    On AWS a paused stream starts within five minutes, and resumes its stopped tables then.
    """
    if target is Target.AWS:
        answer = _resume_deployed(file, environment)
    else:
        check_local(file, environment)
        answer = _resume_here()
    failure = tables_failure(answer, "resume")
    emit_outcome(answer, json_output, lambda: say_all(_lines(answer, verbose)), failure)


def _resume_deployed(file: Path | None, environment: str | None) -> dict[str, Any]:
    from cdclake.deployed.deployed_lake import DeployedLake
    from cdclake.deployed.stream_pause import resume_stream

    return resume_stream(DeployedLake(deployed_file(file), environment))


def _resume_here() -> dict[str, Any]:
    from cdclake.local.lake.lake import changing_lake
    from cdclake.local.operations_backend import local_operations, to_json
    from cdclake.local.process.home import Home

    with changing_lake(Home.from_environment()) as lake:
        return to_json(local_operations(lake).resume(lake.plan.all_tables))


def _lines(answer: dict[str, Any], verbose: bool) -> Iterator[str]:
    if answer.get("was_paused"):
        yield "the stream starts within five minutes"
    yield from did_lines(answer["tables"], verbose)
