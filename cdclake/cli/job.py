"""`cdclake job`: run a Glue job to its end, locally or deployed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.cli.output import JsonOption, emit_outcome, say_all
from cdclake.cli.table_answers import VerboseOption, job_lines, tables_failure
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_job,
)
from cdclake.errors import InputError

WholeOption = Annotated[
    bool, typer.Option("--whole", help="poll_tables: read all rows, not only changed ones.")
]

_PUBLISH = "publish_tables"  # the deployed job has another name


def job(
    name: Annotated[
        str,
        typer.Argument(
            help="apply_changes, maintain_tables, rebuild_tables, refresh_derived, check_tables,"
            " poll_tables or publish_tables (the Glue job publish_hudi)."
        ),
    ],
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Include only this table; repeatable.")
    ] = None,
    whole: WholeOption = False,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    verbose: VerboseOption = False,
    json_output: JsonOption = False,
) -> None:
    """Run a job over the lake's tables.

    The jobs are apply_changes, maintain_tables, rebuild_tables, refresh_derived, check_tables,
    poll_tables and publish_tables; with --target aws also load_tables (a bulk load), and
    stream_changes, which is started and left running. Exit with 1 if the only failures are broken
    quality rules.
    """
    from cdclake.quality_rule import broke_rules_only

    tables, job_name = table or [], _known(name, aws=target is Target.AWS)
    arguments = _arguments(job_name, is_whole=whole)
    if target is Target.LOCAL:
        check_local(file, environment)
        report = _run_here(job_name, tables, arguments)
    else:
        report = _run_on_aws(job_name, tables, arguments, file, environment)
    found = broke_rules_only(report)
    failure = None if found else tables_failure(report, job_name)
    emit_outcome(report, json_output, lambda: say_all(_lines(job_name, report, verbose)), failure)
    if found:
        raise typer.Exit(1)


def _arguments(name: str, *, is_whole: bool) -> dict[str, str]:
    """Return the job's arguments for the options; raise InputError for an option it lacks."""
    from cdclake import naming

    if is_whole and name != naming.POLL_JOB:
        raise InputError(f"--whole is an option of {naming.POLL_JOB}, not of {name}", "remove it")
    return {"whole": "true"} if is_whole else {}


def _run_here(name: str, tables: list[str], arguments: dict[str, str]) -> dict[str, Any]:
    from cdclake.deployed_jobs import has_work, resolve_name
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.lake.spark_jobs import run_job
    from cdclake.local.process.home import Home

    lake = open_lake(Home.from_environment())
    chosen = [resolve_name(name, lake.plan, each) for each in tables]
    # Its jars, such as Hudi's, may not have been fetched.
    if not chosen and not has_work(name, lake.plan):
        return {"ok": True, "tables": []}
    return run_job(lake, name, chosen, **arguments)


def _run_on_aws(
    name: str,
    tables: list[str],
    arguments: dict[str, str],
    file: Path | None,
    environment: str | None,
) -> dict[str, Any]:
    from cdclake import naming

    job = deployed_job(file, environment, name)
    if tables and name in (naming.STREAM_JOB, naming.LOAD_JOB):
        raise InputError(f"{name} always includes all tables", "remove --table")
    if name != naming.STREAM_JOB:
        return job.run(tables, **arguments)
    return {"ok": True, "tables": [], "job_run_id": job.start({})}


def _known(given: str, *, aws: bool) -> str:
    """Return the job with the given name; raise InputError if the command does not run it."""
    from cdclake import naming
    from cdclake.deployed_jobs import TABLE_JOBS

    known = {naming.STREAM_JOB: naming.STREAM_JOB} if aws else {}
    known |= {name: name for name in TABLE_JOBS}
    known |= {_PUBLISH: naming.PUBLISH_JOB} | ({naming.LOAD_JOB: naming.LOAD_JOB} if aws else {})
    if given == naming.FORGET_JOB:
        raise InputError(
            f"{given} runs for one order only, which has the keys to erase",
            "run `cdclake forget TABLE KEY`, which writes the order",
        )
    if given not in known:
        raise InputError(f"unknown job {given!r}", f"choose one of {', '.join(known)}")
    return known[given]


def _lines(name: str, report: dict[str, Any], verbose: bool) -> Iterator[str]:
    from cdclake import naming

    if "job_run_id" in report:
        yield f"run {report['job_run_id']}"
    yield from job_lines(report, verbose)
    if name == naming.LOAD_JOB and report["ok"]:
        yield (
            "the source keeps WAL until the connector runs: set `connector: on` and `stream: on`,"
            " and deploy"
        )
