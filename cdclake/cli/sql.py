"""`cdclake sql`: query the lake with DuckDB, an engine that never writes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cdclake.cli.output import JsonOption, emit

if TYPE_CHECKING:
    from cdclake.local.reader.query import Answer

_MAX_SHOWN_ROWS = 200


def sql(
    query: Annotated[str, typer.Argument(help="One read-only statement in DuckDB's SQL.")],
    at: Annotated[
        str | None,
        typer.Option("--at", help="Time travel: a timestamp (ISO 8601) or a snapshot id."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Query the lake: TABLE, TABLE_changes, TABLE_current, TABLE_history, cdclake_quarantine.

    Timestamps are in UTC. In JSON, decimals are strings and bytes are hexadecimal.
    """
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.reader.duck import lake_reader
    from cdclake.local.reader.query import run_query

    lake = open_lake(Home.from_environment())
    answer = run_query(lake_reader(lake), query, at, None if json_output else _MAX_SHOWN_ROWS)
    emit(answer.to_json(), json_output, lambda: _render(answer))


def _render(answer: Answer) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table()
    for name, _ in answer.columns:
        shown.add_column(Text(name), overflow="fold")
    for row in answer.rows:
        shown.add_row(*(Text("" if value is None else str(value)) for value in row))
    console = Console()
    console.print(shown)
    count = f"{len(answer.rows)} rows"
    if answer.more:
        count = f"the first {count}; --json prints all of them"
    console.print(count)
