"""`cdclake verify`: compare the lake with the source, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.cli.output import JsonOption, emit_outcome, say_all
from cdclake.cli.table_answers import VerboseOption
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_file,
    deployed_job,
    deployment_options,
)
from cdclake.cli.verify_text import lateness, verify_lines
from cdclake.errors import InputError, reported_error

if TYPE_CHECKING:
    from cdclake.local.lake.lake import LocalLake

Report = dict[str, Any]


class ReaderEngine(StrEnum):
    """Engine whose answer is compared."""

    DUCKDB = "duckdb"
    SPARK = "spark"
    TRINO = "trino"
    ATHENA = "athena"


_LOCAL_WAIT_S = 120.0
_LATE_REMEDY = "fix what `error` of each table names, or wait longer with --wait"
_WaitOption = Annotated[
    float | None,
    typer.Option(
        "--wait",
        min=0,
        help="Seconds to wait for pending changes. Default: 120; with --target aws or --reader"
        " spark, 600 plus Firehose's buffering time.",
    ),
]
_TableOption = Annotated[
    str | None,
    typer.Option("--table", help="Only this table, by its name in the lake or in the source."),
]
_SampleOption = Annotated[
    int | None,
    typer.Option("--sample", min=1, help="Compare only about this many rows per table."),
]
_DeepOption = Annotated[
    bool,
    typer.Option(
        "--deep", help="Also compare each state with its changelog, and look for doubled events."
    ),
]
_ReaderOption = Annotated[
    ReaderEngine,
    typer.Option(
        help="Engine whose TABLE_current is compared; trino only locally, athena only on AWS, after"
        " `cdclake views`."
    ),
]


def verify(
    wait: _WaitOption = None,
    table: _TableOption = None,
    sample: _SampleOption = None,
    deep: _DeepOption = False,
    reader: _ReaderOption = ReaderEngine.DUCKDB,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    verbose: VerboseOption = False,
    json_output: JsonOption = False,
) -> None:
    """Compare every row of the source with the lake; exit 1 if anything differs.

    Exit with 4 if nothing differs, but changes did not arrive in time or a poll failed. A stopped
    table counts as a difference. Rows that kept changing during the comparison are reported as
    `unsettled`, and rows that a rule withholds as `withheld`; neither are differences. Nor are
    `incomplete` rows: Athena and Trino show NULL for a large value that PostgreSQL did not send
    with an UPDATE of the row's key, until it is applied. For web logs the requests are counted: no
    acknowledged request may be missing. `status` shows the last result of a table; neither
    an equal sample nor a table whose changes did not all arrive replaces it.
    """
    _check_reader(reader, target)
    chosen: list[str] = [] if table is None else [table]
    if target is Target.AWS:
        arguments = _job_arguments(wait, sample, deep, reader)
        if reader is ReaderEngine.ATHENA:
            report = _verify_in_athena(table, sample, arguments, file, environment)
        else:
            report = _verify_on_aws(chosen, arguments, file, environment)
    else:
        check_local(file, environment)
        if reader is ReaderEngine.TRINO:
            report = _verify_in_trino(_local_s(wait), table, sample, deep)
        elif reader is ReaderEngine.SPARK:
            report = _verify_in_spark(chosen, _job_arguments(wait, sample, deep, reader))
        else:
            report = _verify_here(_local_s(wait), table, sample, deep)
    options = deployment_options(file, environment) if target is Target.AWS else ""
    _end_with(report, json_output, verify_lines(report, verbose, options))


def _end_with(report: Report, json_output: bool, lines: Iterator[str]) -> None:
    """Print the report, and end the command if it is not ok."""
    emit_outcome(report, json_output, lambda: say_all(lines), lateness(report, _LATE_REMEDY))
    if not report["ok"]:
        raise typer.Exit(1)


def _local_s(wait: float | None) -> float:
    return _LOCAL_WAIT_S if wait is None else wait


def _verify_here(wait: float, table: str | None, sample: int | None, deep: bool) -> Report:
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.puts.put_figures import (
        put_table_figures,
        wait_until_settled,
        web_log_figures,
    )
    from cdclake.local.verify import verify_lake

    lake = open_lake(Home.from_environment())
    report = verify_lake(lake, wait, table, sample, deep=deep).to_json()
    if table is not None or not lake.plan.put_streams:
        return report
    wait_until_settled(lake, wait)
    logs, puts = web_log_figures(lake), put_table_figures(lake)
    ok = report["ok"] and not any(each["missing"] for each in (*logs, *puts))
    return {**report, "ok": ok, "web_logs": logs, "puts": puts}


def _check_reader(reader: ReaderEngine, target: Target) -> None:
    if reader is ReaderEngine.TRINO and target is Target.AWS:
        raise InputError(
            "--reader trino reads the local lake only: a deployment asks Athena",
            "use --reader athena, whose views have the same text, or leave out --target aws",
        )
    if reader is ReaderEngine.ATHENA and target is Target.LOCAL:
        raise InputError(
            "--reader athena needs --target aws: the local lake has no Athena",
            "add --target aws --file FILE, or use --reader trino: its SQL is that of the views",
        )


def _job_arguments(
    wait: float | None, sample: int | None, deep: bool, reader: ReaderEngine
) -> dict[str, str]:
    """Return the arguments of the job; Athena is asked from this machine."""
    arguments = {} if wait is None else {"wait": f"{wait:g}"}
    arguments |= {} if sample is None else {"sample": str(sample)}
    arguments |= {"reader": reader.value} if reader is ReaderEngine.SPARK else {}
    return arguments | ({"deep": "true"} if deep else {})


def _verify_in_trino(wait: float, table: str | None, sample: int | None, deep: bool) -> Report:
    from cdclake.local.trino.trino_engine import verify_in_trino

    lake = _lake_with_tables(ReaderEngine.TRINO)
    return verify_in_trino(lake, wait, table, sample, deep=deep).to_json()


def _verify_in_spark(tables: list[str], arguments: dict[str, str]) -> Report:
    """Run the deployed job on this machine: it has a Spark session."""
    from cdclake import naming
    from cdclake.local.lake.spark_jobs import run_job
    from cdclake.local.polls import repeated_polls

    lake = _lake_with_tables(ReaderEngine.SPARK)
    names = [lake.plan.table(name).name for name in tables]
    polled = [table for table in lake.plan.polled if not names or table.name in names]
    with repeated_polls(lake, polled):
        report = run_job(lake, naming.VERIFY_JOB, names, **arguments)
    return _succeeded(report, naming.VERIFY_JOB)


def _lake_with_tables(reader: ReaderEngine) -> LocalLake:
    """Return the running lake; raise InputError if it has no table that a reader could compare."""
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home

    lake = open_lake(Home.from_environment())
    if not lake.plan.all_tables:
        raise InputError(
            f"--reader {reader} compares tables of a database, and this lake has none",
            "run `cdclake verify`, which counts put records and requests",
        )
    return lake


def _verify_on_aws(
    tables: list[str], arguments: dict[str, str], file: Path | None, environment: str | None
) -> Report:
    from cdclake import naming

    job = deployed_job(file, environment, naming.VERIFY_JOB)
    return _succeeded(job.run(tables, **arguments), job.name)


def _succeeded(report: Report, component: str) -> Report:
    """Return the job's report; raise its error if it could not compare."""
    if "error" in report:
        raise reported_error(report["error"], component)
    return report


def _verify_in_athena(
    table: str | None,
    sample: int | None,
    arguments: dict[str, str],
    file: Path | None,
    environment: str | None,
) -> Report:
    # Imports DuckDB: without the extra the command ends before it starts the job.
    from cdclake.deployed.athena_engine import check_views, compare_athena, with_answers
    from cdclake.deployed.deployed_lake import DeployedLake

    lake = DeployedLake(deployed_file(file), environment)
    check_views(lake, table)
    report = _verify_on_aws([] if table is None else [table], arguments, file, environment)
    compared = [each["table"] for each in report["tables"]]
    return with_answers(report, compare_athena(lake, compared, sample))
