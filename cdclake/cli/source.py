"""`cdclake source sql`: run a SQL file in the source database."""

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
)


def source_sql(
    script: Annotated[Path, typer.Argument(help="SQL file, for example of pg_dump.")],
    keep_owners: Annotated[
        bool,
        typer.Option("--keep-owners", help="Also run `ALTER ... OWNER TO`; the roles must exist."),
    ] = False,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Run a SQL file in the source as its administrator: statements and `COPY ... FROM stdin`.

    Each statement on its own, as psql does; commands of psql are refused with their line, and so is
    a transaction that the file does not end: it is undone. With --target aws a function in the
    private network runs it: a file of at most 300 MB, for at most 15 minutes.
    """
    if target is Target.AWS:
        from cdclake.deployed.source_sql import run_source_sql

        deployed = deployed_file(file)
        with step(f"run {script}"):
            answer = run_source_sql(script, deployed, environment, keep_owners=keep_owners)
    else:
        check_local(file, environment)
        answer = _run_here(script, keep_owners=keep_owners)
    emit(answer, json_output, lambda: _render(answer))


def _run_here(script: Path, *, keep_owners: bool) -> dict[str, Any]:
    from cdclake.local.lake.source_script import run_local_script
    from cdclake.local.process.home import Home

    with step(f"run {script}"):
        return run_local_script(Home.from_environment(), script, keep_owners=keep_owners)


def _render(answer: dict[str, Any]) -> None:
    skipped = answer["skipped_owners"]
    owners = f", {skipped} changes of owners skipped" if skipped else ""
    say(f"{answer['statements']} statements, {answer['copied_rows']} rows copied{owners}")
