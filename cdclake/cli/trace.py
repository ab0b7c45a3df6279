"""`cdclake trace`: the life of one row, from the source to the readers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.activity import step
from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_file,
    deployment_options,
)
from cdclake.errors import InputError


def trace(
    table: Annotated[str, typer.Argument(help="Table, by its lake name or as SCHEMA.TABLE.")],
    key: Annotated[
        list[str],
        typer.Argument(help="Key of the row: one value per key column, as PostgreSQL reads it."),
    ],
    stored: Annotated[
        bool,
        typer.Option(
            "--stored", help="Also search every stored file for the row's values (local lake only)."
        ),
    ] = False,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Explain why the lake shows a row as it does, from the source to the readers.

    Print the answer as one word with its reasons, then every event of the row: its transaction,
    offset in Kafka, and the time between the hops. Masked columns are masked. Write `--` before a
    key that begins with a minus sign. With --target aws, read only the lake, not source and Kafka.

    --stored (local lake only) decodes all files of the lake and searches them for every value that
    the row has or had. It also lists places outside the lake that may keep them, and until when.
    """
    from cdclake.trace.stored_report import stored_lines
    from cdclake.trace.trace_report import timeline

    if target is Target.AWS:
        report = _deployed_report(deployed_file(file), environment, table, key, stored)
    else:
        check_local(file, environment)
        report = _local_report(table, key, stored)

    def render() -> None:
        for line in (*timeline(report), *(stored_lines(report) if stored else ())):
            say(line)

    emit(report, json_output, render)


def _local_report(table: str, key: list[str], stored: bool) -> dict[str, Any]:
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.trace.gather import trace_row
    from cdclake.local.trace.stored_row import stored_row
    from cdclake.trace.trace_report import trace_report

    with step("read what is known of the row"):
        lake = open_lake(Home.from_environment())
        facts = trace_row(lake, table, key)
    return trace_report(facts) | (stored_row(lake, facts) if stored else {})


def _deployed_report(
    file: Path, environment: str | None, table: str, key: list[str], stored: bool
) -> dict[str, Any]:
    from cdclake.deployed.deployed_lake import DeployedLake
    from cdclake.deployed.deployed_trace import trace_deployed_row
    from cdclake.trace.trace_report import trace_report

    if stored:
        raise InputError(
            "--stored applies to the local lake only", "run the command again without it"
        )
    with step("read what is known of the row"):
        facts = trace_deployed_row(DeployedLake(file, environment), table, key)
    return trace_report(facts, deployment_options(file, environment))
