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
    stored: Annotated[
        bool,
        typer.Option("--stored", help="Search every stored file for the row's values, too."),
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Explain what the lake shows of one row, with its way through each part.

    The answer is one word and its reasons; then every event of the row, with its transaction, its
    place in Kafka, and the time that each hop took. Values are those of the lake, so masked columns
    are masked. Write `--` before a key that begins with a minus sign.

    With --stored all files of the lake are decoded and searched for every value that the row has or
    had, and the places outside of the lake are listed that may have them, and until when.
    """
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.trace.gather import trace_row
    from cdclake.local.trace.stored_row import stored_row
    from cdclake.trace.stored_report import stored_lines
    from cdclake.trace.trace_report import timeline, trace_report

    lake = open_lake(Home.from_environment())
    facts = trace_row(lake, table, key)
    report = trace_report(facts) | (stored_row(lake, facts) if stored else {})

    def render() -> None:
        for line in (*timeline(report), *(stored_lines(report) if stored else ())):
            say(line)

    emit(report, json_output, render)
