"""`cdclake resync`: read a table from the source again while all tables keep streaming."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.cli.aligned import counted
from cdclake.cli.output import JsonOption, emit_outcome, say_all
from cdclake.cli.table_answers import VerboseOption, did_lines, tables_failure
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
        str | None, typer.Argument(help="The table, by its name in the lake or in the source.")
    ] = None,
    expired: Annotated[
        bool,
        typer.Option("--expired", help="Resync every table whose events Kafka has lost."),
    ] = False,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Request the resync and return; the stream completes it."),
    ] = False,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    verbose: VerboseOption = False,
    json_output: JsonOption = False,
) -> None:
    """Read every row of a table again, and remove rows from the lake that the source lacks."""
    begun = time.monotonic()
    _check(table, expired)
    if target is Target.AWS:
        answer = _resync_deployed(table, no_wait, file, environment)
    else:
        check_local(file, environment)
        answer = _resync_here(table, no_wait)
    seconds = time.monotonic() - begun
    failure = tables_failure(answer, "resync")
    emit_outcome(answer, json_output, lambda: say_all(_lines(answer, verbose, seconds)), failure)


def _resync_deployed(
    table: str | None, no_wait: bool, file: Path | None, environment: str | None
) -> dict[str, Any]:
    from cdclake import naming

    if no_wait:
        raise InputError(
            "--no-wait applies to the local lake only",
            "interrupt the command instead; the job continues",
        )
    job = deployed_job(file, environment, naming.OPERATE_JOB)
    if table is None:
        return job.operate("resync", [], expired="true")
    return job.operate("resync", [table])


def _check(table: str | None, expired: bool) -> None:
    if (table is None) != expired:
        raise InputError(
            "resync needs either a table or --expired",
            "name one table, or add --expired for all whose events Kafka has lost",
        )


def _resync_here(table: str | None, no_wait: bool) -> dict[str, Any]:
    from cdclake.jobs.operations.table_operations import streamed_tables
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.operations_backend import local_operations, to_json
    from cdclake.local.process.home import Home

    lake = open_lake(Home.from_environment())
    operations = local_operations(lake)
    if table is None:
        chosen = operations.incomplete(streamed_tables(lake.plan))
    else:
        chosen = [lake.plan.streamed(table)]
    return to_json({each.name: operations.resync(each, wait=not no_wait) for each in chosen})


def _lines(answer: dict[str, Any], verbose: bool, seconds: float) -> Iterator[str]:
    if not answer["tables"]:
        yield "no table lacks events that Kafka has lost"
    yield from did_lines(answer["tables"], verbose)
    if answer["tables"]:
        yield f"{counted(len(answer['tables']), 'table')} in {seconds:.0f} s"
