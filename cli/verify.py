"""`cdclake verify`: proves, row for row, that the lake holds what the source does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import emit, say

if TYPE_CHECKING:
    from local.verify.report import Report, TableReport


def verify(
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for what is under way.")
    ] = 120.0,
    table: Annotated[
        str | None, typer.Option("--table", help="One table, by its name in the lake or source.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Compare about so many rows a table.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare every row of the source with the lake; exit 1 if anything differs.

    A table that has stopped is a difference. Keys that changed in every round of reading are
    counted as `unsettled`, which is none.
    """
    from local.home import Home
    from local.lake import open_lake
    from local.verify.lake import verify_lake

    report = verify_lake(open_lake(Home.from_environment()), wait, table, sample)
    emit(report.to_json(), json_output, lambda: _render(report))
    if not report.ok:
        raise typer.Exit(1)


def _render(report: Report) -> None:
    for table in report.tables:
        say(_line(table))
        for example in table.first:
            key = ", ".join(f"{name}={value}" for name, value in example.key.items())
            say(f"  {example.kind} {key}")
            if example.source is not None and example.lake is not None:
                for name in example.columns:
                    said = f"source {example.source[name]!r}, lake {example.lake[name]!r}"
                    say(f"    {name}: {said}")
    said = "equal" if report.ok else "NOT equal"
    part = f" (a sample of about {report.sample} rows a table)" if report.sample else ""
    say(f"{said}{part}, {report.rounds} rounds, {report.seconds} s")


def _line(table: TableReport) -> str:
    kinds = ("missing", "extra", "different", "unsettled")
    counts = ", ".join(f"{getattr(table, kind)} {kind}" for kind in kinds if getattr(table, kind))
    omitted = f"; without {', '.join(table.omitted_columns)}" if table.omitted_columns else ""
    trouble = "STOPPED: " if table.state == "stopped" else ""
    stopped = f"; {trouble}{table.error}" if table.error else ""
    rows = f"{table.source_rows} rows in the source, {table.lake_rows} in the lake"
    return f"{table.source} -> {table.table}: {counts or 'equal'}; {rows}{omitted}{stopped}"
