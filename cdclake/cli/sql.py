"""`cdclake sql`: query the lake with DuckDB, an engine that never writes to it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.cli.output import JsonOption, emit
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_file,
)
from cdclake.errors import InputError

if TYPE_CHECKING:
    from cdclake.query_answer import Answer

_MAX_SHOWN_ROWS = 200


class QueryEngine(StrEnum):
    """Engine of a query."""

    DUCKDB = "duckdb"
    ATHENA = "athena"


def sql(
    query: Annotated[str, typer.Argument(help="One read-only statement in DuckDB's SQL.")],
    at: Annotated[
        str | None,
        typer.Option("--at", help="The lake at a time (ISO 8601), or at a snapshot's id."),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            help="The source's rows at any commit time that the changelog keeps (ISO 8601).",
        ),
    ] = None,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    engine: Annotated[
        QueryEngine, typer.Option(help="duckdb, or with --target aws the deployment's Athena.")
    ] = QueryEngine.DUCKDB,
    json_output: JsonOption = False,
) -> None:
    """Query the lake: TABLE, TABLE_changes, TABLE_current, TABLE_history, cdclake_quarantine.

    Timestamps are in UTC. In JSON, decimals are strings and bytes are hexadecimal. With --target
    aws DuckDB reads the bucket with your credentials, or Athena runs the query in its own SQL.
    """
    if target is Target.LOCAL:
        check_local(file, environment)
    if engine is QueryEngine.ATHENA:
        answer = _in_athena(query, at or as_of, target, file, environment)
    else:
        limit = None if json_output else _MAX_SHOWN_ROWS
        moment = {"at": at, "limit": limit, "as_of": as_of}
        answer = _in_duckdb(query, moment, target, file, environment)
    emit(answer.to_json(), json_output, lambda: _render(answer))


def _in_duckdb(
    query: str,
    moment: dict[str, Any],
    target: Target,
    file: Path | None,
    environment: str | None,
) -> Answer:
    if target is Target.AWS:
        from cdclake.deployed.deployed_lake import DeployedLake
        from cdclake.local.reader.query import run_query

        lake = DeployedLake(deployed_file(file), environment)
        with TemporaryDirectory() as spill:
            return run_query(lake.reader(Path(spill)), query, **moment)
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.reader.duck import lake_reader
    from cdclake.local.reader.query import run_query

    return run_query(lake_reader(open_lake(Home.from_environment())), query, **moment)


def _in_athena(
    query: str, at: str | None, target: Target, file: Path | None, environment: str | None
) -> Answer:
    from cdclake.config.deployment import load_deployment
    from cdclake.deployed.athena_query import run_athena_query

    if target is Target.LOCAL or at is not None:
        raise InputError(
            "--engine athena needs --target aws, and knows neither --at nor --as-of",
            "write `FOR TIMESTAMP AS OF` in the query, or use --engine duckdb",
        )
    deployment = load_deployment(deployed_file(file), environment)
    return run_athena_query(deployment.prefix, deployment.plan.lake_database, query)


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
