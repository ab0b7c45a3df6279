"""`cdclake redrive`: bring the records that Firehose could not deliver into the lake."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_file,
)


def redrive(
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Report the outcome for each record and change nothing."),
    ] = False,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Put records that Firehose could not deliver into the changelogs, or into quarantine.

    Re-decode failed records with the current pipeline file. Records that still cannot be decoded
    go to quarantine with their bytes, their place and the reason. Fix the causes first: --dry-run
    shows which are left. Failed records of `puts:` and `weblogs:` are not covered: docs/puts.md
    shows how to put them again.
    """
    if target is Target.AWS:
        answer = _redrive_deployed(file, environment, dry_run=dry_run)
    else:
        check_local(file, environment)
        answer = _redrive_local(dry_run=dry_run)
    emit(answer, json_output, lambda: _render(answer))
    if not answer["ok"]:
        raise typer.Exit(4)


def _redrive_local(*, dry_run: bool) -> dict[str, Any]:
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.redrive import redrive_lake

    return redrive_lake(open_lake(Home.from_environment()), dry_run=dry_run)


def _redrive_deployed(
    file: Path | None, environment: str | None, *, dry_run: bool
) -> dict[str, Any]:
    from cdclake.deployed.aws_functions import DeployedRedrive
    from cdclake.redrive.service import redrive_all

    return redrive_all(DeployedRedrive(deployed_file(file), environment), dry_run=dry_run)


def _render(answer: dict[str, Any]) -> None:
    would = "would go" if answer["dry_run"] else "went"
    say(f"{answer['objects']} objects")
    for changelog, count in answer["redriven"].items():
        say(f"{count} rows {would} into {changelog}")
    for reason, count in answer["quarantined"].items():
        say(f"{count} records {would} into quarantine: {reason}")
    if answer["dropped"]:
        say(f"{answer['dropped']} records are not changes of a table")
    for place, count in answer["too_large"].items():
        say(f"{count} records are too large for Firehose and stay in {place}")
    if not answer["dry_run"] and (answer["redriven"] or answer["quarantined"]):
        say("Firehose appends the rows after about a minute")
