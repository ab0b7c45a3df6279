"""`cdclake replay`: try quarantined events again after the cause is mended."""

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
        str | None, typer.Option("--table", help="One table, by its name in the lake or source.")
    ] = None,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Apply quarantined events that are accepted now, each at its place in the order.

    Those that are refused still stay in the quarantine. A stopped table needs `resume` first.
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
    from cdclake.local import operations_backend
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home

    lake = open_lake(Home.from_environment())
    streamed = [each for each in lake.plan.tables if each.delivery == "stream"]
    tables = streamed if table is None else [lake.plan.streamed(table)]
    operations_backend.check_flowing(lake)
    if table is not None and (trouble := operations_backend.stopped(lake, tables[0])) is not None:
        raise trouble
    return operations_backend.replay(lake, tables)


def _render(answer: dict[str, Any]) -> None:
    for table in answer["tables"]:
        say(f"{table['table']}: {table['did']}")
        for reason, count in table.get("refused", {}).items():
            say(f"  {count} x {reason}")
