"""`cdclake replay`: retry quarantined events after their cause is fixed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from cdclake.cli.output import JsonOption, emit_outcome, say_all
from cdclake.cli.table_answers import VerboseOption, did_lines, replay_total, tables_failure
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_job,
)


def replay(
    table: Annotated[
        str | None,
        typer.Option("--table", help="Only this table, by its name in the lake or in the source."),
    ] = None,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    verbose: VerboseOption = False,
    json_output: JsonOption = False,
) -> None:
    """Retry quarantined events; apply those that are accepted now, at their position.

    Events that are refused again stay in quarantine. Run `resume` first for a stopped table.
    """
    from cdclake import naming

    if target is Target.AWS:
        named = [] if table is None else [table]
        answer = deployed_job(file, environment, naming.OPERATE_JOB).operate("replay", named)
    else:
        check_local(file, environment)
        answer = _replay_here(table)
    failure = tables_failure(answer, "replay")
    emit_outcome(answer, json_output, lambda: say_all(_lines(answer, verbose)), failure)


def _replay_here(table: str | None) -> dict[str, Any]:
    from cdclake.jobs.operations.table_operations import streamed_tables
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.operations_backend import local_operations, to_json
    from cdclake.local.process.home import Home

    lake = open_lake(Home.from_environment())
    tables = streamed_tables(lake.plan, [] if table is None else [table])
    return to_json(local_operations(lake).replay(tables, skip_stopped=table is None))


def _lines(answer: dict[str, Any], verbose: bool) -> Iterator[str]:
    yield from did_lines(answer["tables"], verbose)
    yield replay_total(answer["tables"])
