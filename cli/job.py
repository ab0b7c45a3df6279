"""`cdclake job`: run one of the Glue jobs here, to its end."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cdclake.errors import InputError
from cli.output import emit, say


def job(
    name: Annotated[str, typer.Argument(help="apply_changes, maintain_tables or rebuild_tables.")],
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Only this table; may be repeated.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run a job over the lake's tables."""
    from cdclake import naming
    from local.home import Home
    from local.jobs import run_job
    from local.lake import open_lake

    known = (naming.APPLY_JOB, naming.MAINTAIN_JOB, naming.REBUILD_JOB)
    if name not in known:
        raise InputError(f"there is no job {name!r}", f"choose one of {', '.join(known)}")
    lake = open_lake(Home.from_environment())
    report = run_job(lake, name, [chosen_table(lake, each).name for each in table or []])
    emit(report, json_output, lambda: _render(report))
    if not report["ok"]:
        raise typer.Exit(4)


def chosen_table(lake: Any, name: str) -> Any:
    """The lake's table of that lake or source name; InputError if there is none."""
    try:
        return lake.plan.table(name)
    except KeyError:
        names = ", ".join(table.name for table in lake.plan.tables)
        raise InputError(f"the lake has no table {name!r}", f"choose one of {names}") from None


def _render(report: dict[str, Any]) -> None:
    for line in report["tables"]:
        say(
            f"{line['table']}: {line['seconds']} s, {line['rows_applied']} rows applied, "
            f"files {line['files_before']} -> {line['files_after']}, "
            f"snapshots {line['snapshots_before']} -> {line['snapshots_after']}"
            + (f"; {line['error']}" if line["error"] else "")
        )
