"""`cdclake verify`: compare the lake with the source, row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.cli.output import JsonOption, emit, say_all
from cdclake.cli.table_answers import VerboseOption
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_job,
)
from cdclake.cli.verify_text import verify_lines
from cdclake.errors import ComponentFailed

Report = dict[str, Any]


def verify(
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for pending changes.")
    ] = 120.0,
    table: Annotated[
        str | None,
        typer.Option("--table", help="Only this table, by its name in the lake or in the source."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option("--sample", min=1, help="Compare only about this many rows per table."),
    ] = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also compare each state with its changelog, and look for doubled events.",
        ),
    ] = False,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    verbose: VerboseOption = False,
    json_output: JsonOption = False,
) -> None:
    """Compare every row of the source with the lake; exit 1 if anything differs.

    A stopped table counts as a difference. Rows that kept changing during the comparison are
    reported as `unsettled`, and rows that a rule withholds as `withheld`; neither are differences.
    For web logs the requests are counted: no acknowledged request may be missing.
    """
    if target is Target.AWS:
        report = _verify_on_aws(wait, table, sample, deep, file, environment)
    else:
        check_local(file, environment)
        report = _verify_here(wait, table, sample, deep)
    emit(report, json_output, lambda: say_all(verify_lines(report, verbose)))
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
