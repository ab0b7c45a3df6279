"""`cdclake verify`: compare the lake with the source, row by row."""

from __future__ import annotations

from enum import StrEnum
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
    deployed_job,
)
from cdclake.errors import ComponentFailed, InputError

Report = dict[str, Any]


class ReaderEngine(StrEnum):
    """Engine whose answer is compared."""

    DUCKDB = "duckdb"
    TRINO = "trino"
    ATHENA = "athena"


_WaitOption = Annotated[
    float, typer.Option("--wait", min=0, help="Seconds to wait for pending changes.")
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
    typer.Option(help="Engine whose TABLE_current is compared; athena with --target aws."),
]


def verify(
    wait: _WaitOption = 120.0,
    table: _TableOption = None,
    sample: _SampleOption = None,
    deep: _DeepOption = False,
    reader: _ReaderOption = ReaderEngine.DUCKDB,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Compare every row of the source with the lake; exit 1 if anything differs.

    A stopped table counts as a difference. Rows that kept changing during the comparison are
    reported as `unsettled`, and rows that a rule withholds as `withheld`; neither are differences.
    Nor are `incomplete` rows: Athena shows NULL for a large value that an UPDATE of the row's key
    did not send, until it is applied. For web logs the requests are counted: no acknowledged
    request may be missing.
    """
    _check_reader(reader, target)
    if target is Target.AWS:
        report = _verify_on_aws(wait, table, sample, deep, file, environment)
        if reader is ReaderEngine.ATHENA:
            report = _with_athena(report, table, sample, file, environment)
    else:
        check_local(file, environment)
        report = _verify_here(wait, table, sample, deep)
    emit(report, json_output, lambda: _render(report))
    if not report["ok"]:
        raise typer.Exit(1)


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
    if reader is ReaderEngine.TRINO:
        raise InputError(
            "--reader trino is not possible: the local lake has no Trino, and a deployment asks"
            " Athena",
            "use --reader athena with --target aws, whose views have the same text",
        )
    if reader is ReaderEngine.ATHENA and target is Target.LOCAL:
        raise InputError(
            "--reader athena needs --target aws: the local lake has no Athena",
            "add --target aws --file FILE",
        )


def _verify_on_aws(
    wait: float,
    table: str | None,
    sample: int | None,
    deep: bool,
    file: Path | None,
    environment: str | None,
) -> Report:
    from cdclake import naming

    arguments = {"wait": f"{wait:g}"} | ({} if sample is None else {"sample": str(sample)})
    arguments |= {"deep": "true"} if deep else {}
    job = deployed_job(file, environment, naming.VERIFY_JOB)
    report = job.run([] if table is None else [table], **arguments)
    if "error" in report:
        error = report["error"]
        raise ComponentFailed(error["message"], error["remedy"], component=job.name)
    return report


def _with_athena(
    report: Report,
    table: str | None,
    sample: int | None,
    file: Path | None,
    environment: str | None,
) -> Report:
    from cdclake.deployed.athena_engine import compare_athena, with_answers
    from cdclake.deployed.deployed_lake import DeployedLake

    lake = DeployedLake(deployed_file(file), environment)
    return with_answers(report, compare_athena(lake, table, sample))


def _render(report: Report) -> None:
    for table in report["tables"]:
        say(_line(table))
        for example in table["first"]:
            key = ", ".join(f"{name}={value}" for name, value in example["key"].items())
            say(f"  {example['kind']} {key}")
            if example["source"] is not None and example["lake"] is not None:
                for name in example["columns"]:
                    source, lake = example["source"][name], example["lake"][name]
                    say(f"    {name}: source {source!r}, lake {lake!r}")
        if table.get("deep"):
            _render_deep(table["table"], table["deep"])
    for logs in report.get("web_logs", ()):
        say(
            f"web logs {logs['web_logs']}: {sum(logs['rows'].values())} requests,"
            f" {logs['failed']} failed, {logs['missing']} missing"
        )
    for put in report.get("puts", ()):
        say(
            f"put table {put['puts']}: {sum(put['rows'].values())} rows,"
            f" {put['failed']} failed, {put['missing']} missing"
        )
    result = "equal" if report["ok"] else "NOT equal"
    if report["ok"] and any(table.get("incomplete") for table in report["tables"]):
        result = "equal except for incomplete rows"
    sample = report["sample"]
    part = f" (a sample of about {sample} rows per table)" if sample else ""
    reader = report.get("reader", ReaderEngine.DUCKDB.value)  # an older job does not name it
    by = f" in {reader}" if reader != ReaderEngine.DUCKDB else ""
    say(f"{result}{by}{part}, {report['rounds']} rounds, {report['seconds']} s")


_DEEP_KINDS = {
    "missing": "rows of the changelog are missing in {table}",
    "extra": "rows of {table} have no event in the changelog",
    "different": "rows of {table} differ from the changelog",
    "doubled_rows": "keys are in {table} more than once",
    "doubled_events": "events are in {table}_changes more than once",
    "history_missing": "rows of {table} have no event in {table}_history",
    "history_different": "rows of {table} differ from their event in {table}_history",
}


def _render_deep(table: str, deep: dict[str, Any]) -> None:
    for kind, text in _DEEP_KINDS.items():
        if deep[kind]:
            say(f"  {deep[kind]} {text.format(table=table)}")
    for finding in deep["first"]:
        key = ", ".join(f"{name}={value}" for name, value in finding["key"].items())
        columns = f": {', '.join(finding['columns'])}" if finding["columns"] else ""
        say(f"  {finding['kind']} {key}{columns}")


def _line(table: dict[str, Any]) -> str:
    kinds = ("missing", "extra", "different", "unsettled", "withheld", "incomplete")
    counts = ", ".join(f"{table[kind]} {kind}" for kind in kinds if table.get(kind))
    result = counts or ("equal so far" if table["state"] == "stopped" else "equal")
    held = table.get("quarantined", 0)
    remedy = "`cdclake replay`, or `cdclake resync` where it refuses them"
    quarantine = f"; {held} events in the quarantine ({remedy})" if held else ""
    omitted = table["omitted_columns"]
    without = f"; without {', '.join(omitted)}" if omitted else ""
    prefix = "STOPPED: " if table["state"] == "stopped" else ""
    error = f"; {prefix}{table['error']}" if table["error"] else ""
    rows = f"{table['source_rows']} rows in the source, {table['lake_rows']} in the lake"
    named = f"{table['source']} -> {table['table']}"
    return f"{named}: {result}; {rows}{without}{quarantine}{error}"
