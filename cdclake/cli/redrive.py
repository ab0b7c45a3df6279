"""`cdclake redrive`: write records that Firehose failed to deliver into the lake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
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

Call = Callable[[dict[str, Any]], dict[str, Any]]


def redrive(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only report where each record would go.")
    ] = False,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Re-decode records that Firehose failed to deliver, with the current pipeline file.

    Records that still cannot be decoded go to quarantine with their bytes, location and reason. Fix
    the causes first: --dry-run shows the records that still fail.
    """
    if target is Target.AWS:
        call = _deployed(file, environment)
    else:
        check_local(file, environment)
        call = _local()
    answer = redriven(call, dry_run=dry_run)
    emit(answer, json_output, lambda: _render(answer))
    if not answer["ok"]:
        raise typer.Exit(4)


def _local() -> Call:
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.redrive import redrive_here

    return redrive_here(open_lake(Home.from_environment()))


def _deployed(file: Path | None, environment: str | None) -> Call:
    from cdclake.cli.aws_functions import DeployedRedrive

    return DeployedRedrive(deployed_file(file), environment)


def redriven(call: Call, *, dry_run: bool) -> dict[str, Any]:
    """Call until no record is left; return the sums of all answers."""
    counts = {name: Counter[str]() for name in ("redriven", "quarantined", "too_large")}
    objects = dropped = 0
    event: dict[str, Any] = {"dry_run": dry_run}
    more = True
    while more:
        answer = call(event)
        for name, counted in counts.items():
            counted.update(answer[name])
        objects, dropped = objects + answer["objects"], dropped + answer["dropped"]
        event = {"dry_run": dry_run, "before": answer["before"], "after": answer["after"]}
        more = answer["more"]
    return {
        "ok": not counts["too_large"],
        "dry_run": dry_run,
        "objects": objects,
        "dropped": dropped,
        **{name: dict(counted) for name, counted in counts.items()},
    }


def _render(answer: dict[str, Any]) -> None:
    would = "would go" if answer["dry_run"] else "went"
    say(f"{answer['objects']} objects")
    for changelog, count in answer["redriven"].items():
        say(f"{count} rows {would} to {changelog}")
    for reason, count in answer["quarantined"].items():
        say(f"{count} records {would} to quarantine: {reason}")
    if answer["dropped"]:
        say(f"{answer['dropped']} records are not changes of a table")
    for place, count in answer["too_large"].items():
        say(f"{count} records exceed the size limit of Firehose, and stay in {place}")
    if not answer["dry_run"] and (answer["redriven"] or answer["quarantined"]):
        say("Firehose appends these records after about a minute")
