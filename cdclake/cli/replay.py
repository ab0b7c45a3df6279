"""`cdclake replay`: retry quarantined events after their cause is fixed."""

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


def replay(
    table: Annotated[
        str | None,
        typer.Option("--table", help="Only this table, by its name in the lake or in the source."),
    ] = None,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
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
    emit(answer, json_output, lambda: _render(answer))
    if not answer["ok"]:
        raise typer.Exit(4)


def _replay_here(table: str | None) -> dict[str, Any]:
    from cdclake.jobs.operations.table_operations import streamed_tables
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.operations_backend import local_operations, to_json
    from cdclake.local.process.home import Home

    lake = open_lake(Home.from_environment())
    tables = streamed_tables(lake.plan, [] if table is None else [table])
    return to_json(local_operations(lake).replay(tables, skip_stopped=table is None))


def _render(answer: dict[str, Any]) -> None:
    for table in answer["tables"]:
        say(f"{table['table']}: {table['did']}")
        for reason, count in table.get("refused", {}).items():
            say(f"  {count} x {reason}")
