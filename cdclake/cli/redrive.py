"""`cdclake redrive`: bring the records that Firehose could not deliver into the lake."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.activity import step
from cdclake.cli.output import JsonOption, emit_outcome, say
from cdclake.cli.table_answers import listed
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_file,
)
from cdclake.errors import CdcError, ComponentFailed


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
    """Put records that Firehose could not deliver into the lake, or into quarantine.

    Re-decode failed changes with the current pipeline file. Records that still cannot be decoded
    go to quarantine with their bytes, their place and the reason. Fix the causes first: --dry-run
    shows which are left. Failed records of `puts:` and `weblogs:` are put into their stream again.
    Run only one such redrive at a time: two may put a record twice, and the table keeps both.
    """
    if target is Target.AWS:
        answer = _redrive_deployed(file, environment, dry_run=dry_run)
    else:
        check_local(file, environment)
        answer = _redrive_local(dry_run=dry_run)
    emit_outcome(answer, json_output, lambda: _render(answer), _failure(answer))


def _redrive_local(*, dry_run: bool) -> dict[str, Any]:
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.redrive import redrive_lake

    with step("redrive failed records"):
        return redrive_lake(open_lake(Home.from_environment()), dry_run=dry_run)


def _redrive_deployed(
    file: Path | None, environment: str | None, *, dry_run: bool
) -> dict[str, Any]:
    from cdclake.deployed.aws_functions import deployed_redrives
    from cdclake.redrive.pages import redrive_all

    with step("redrive failed records"):
        return redrive_all(*deployed_redrives(deployed_file(file), environment), dry_run=dry_run)


def _failure(answer: dict[str, Any]) -> CdcError | None:
    """Return the failure of a redrive that leaves records where they are."""
    from cdclake.naming import FIREHOSE_COMPONENT, STREAM_COMPONENT

    if awaited := Counter(answer["awaited"]):
        return ComponentFailed(
            f"{awaited.total()} records stay where they are: the source has widened columns of"
            f" their tables, and the stream has not widened {listed([*awaited])} yet",
            "redrive again after the stream's next batch; `cdclake status` shows a table whose"
            " changelog it cannot widen",
            component=STREAM_COMPONENT,
        )
    left = Counter(answer["kept"]) + Counter(answer["too_large"])
    if not left:
        return None
    return ComponentFailed(
        f"{left.total()} records stay in {listed([*left])}: they are too large or cannot be put"
        " again",
        "see `cdclake runbook redrive`",
        component=FIREHOSE_COMPONENT,
    )


def _render(answer: dict[str, Any]) -> None:
    would = "would go" if answer["dry_run"] else "went"
    for stream, count in answer["put_again"].items():
        say(f"{count} records {would} into the stream {stream} again")
    say(f"{answer['objects']} objects" if answer["objects"] else "no failed records")
    for changelog, count in answer["redriven"].items():
        say(f"{count} rows {would} into {changelog}")
    for reason, count in answer["quarantined"].items():
        say(f"{count} records {would} into quarantine: {reason}")
    if answer["dropped"]:
        say(f"{answer['dropped']} records are not changes of a table")
    for place, count in answer["kept"].items():
        say(f"{count} records cannot be put again and stay in {place}")
    for place, count in answer["too_large"].items():
        say(f"{count} records are too large for Firehose and stay in {place}")
    for changelog, count in answer["awaited"].items():
        say(f"{count} records stay until the stream has widened {changelog}")
    put = answer["redriven"] or answer["quarantined"] or answer["put_again"]
    if not answer["dry_run"] and put:
        say("Firehose appends the rows after about a minute")
