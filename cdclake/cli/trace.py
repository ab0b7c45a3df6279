"""`cdclake trace`: the life of one row, from the source to the readers."""

from __future__ import annotations

from typing import Annotated

import typer

from cdclake.cli.output import JsonOption, emit, say


def trace(
    table: Annotated[str, typer.Argument(help="Table, by its lake name or as SCHEMA.TABLE.")],
    key: Annotated[
        list[str],
        typer.Argument(help="Key of the row: one value per key column, as PostgreSQL reads it."),
    ],
    json_output: JsonOption = False,
) -> None:
    """Explain what the lake shows of one row, with its way through each part.

    The answer is one word and its reasons; then every event of the row, with its transaction, its
    place in Kafka, and the time that each hop took. Values are those of the lake, so masked columns
    are masked. Write `--` before a key that begins with a minus sign.
    """
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.trace.gather import trace_row
    from cdclake.trace.trace_report import timeline, trace_report

    report = trace_report(trace_row(open_lake(Home.from_environment()), table, key))

    def render() -> None:
        for line in timeline(report):
            say(line)

    emit(report, json_output, render)
