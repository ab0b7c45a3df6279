"""`cdclake sql`: query the lake with DuckDB, an engine that never writes to it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from cdclake.activity import step
from cdclake.cli.answer_formats import SHOWN, Format, footer, lines_of
from cdclake.cli.output import JsonOption, emit, ending_with_reader, say, say_all, warn_all
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_file,
    lake_reader_of,
)
from cdclake.errors import InputError, reading_failure

if TYPE_CHECKING:
    from cdclake.query_answer import Answer

_MAX_SHOWN_ROWS = 200


class QueryEngine(StrEnum):
    """Engine of a query."""

    DUCKDB = "duckdb"
    ATHENA = "athena"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Engine:
    """Engine and lake of the queries of one call."""

    kind: QueryEngine
    target: Target
    file: Path | None
    environment: str | None
    at: str | None
    as_of: str | None

    def run(self, query: str, limit: int | None, parquet: Path | None = None) -> Answer:
        """Run one query and return its answer; with `parquet` write the rows to that file."""
        if self.kind is QueryEngine.ATHENA:
            return self._in_athena(query)
        from cdclake.local.reader.query import run_query

        with (
            step("run the query"),
            lake_reader_of(self.target, self.file, self.environment) as reader,
        ):
            return run_query(reader, query, self.at, limit, self.as_of, parquet)

    def _in_athena(self, query: str) -> Answer:
        from cdclake.config.deployment import load_deployment
        from cdclake.deployed.athena_query import run_athena_query

        if self.target is Target.LOCAL or self.at is not None or self.as_of is not None:
            raise InputError(
                "--engine athena needs --target aws and does not support --at or --as-of",
                "write `FOR TIMESTAMP AS OF` in the query, or use --engine duckdb",
            )
        deployment = load_deployment(deployed_file(self.file), self.environment)
        with step("run the query in Athena"):
            return run_athena_query(deployment.prefix, deployment.plan.lake_database, query)


QueryArgument = Annotated[
    str | None, typer.Argument(help="One read-only statement in DuckDB's SQL.")
]
QueryFileOption = Annotated[
    Path | None, typer.Option("-f", "--query-file", help="Read the statement from this file.")
]
AtOption = Annotated[
    str | None,
    typer.Option("--at", help="The lake at a time (ISO 8601, or -5m), or at a snapshot's id."),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        help="The source's rows at any commit time that the changelog has (ISO 8601, or -5m).",
    ),
]
EngineOption = Annotated[
    QueryEngine, typer.Option(help="duckdb, or with --target aws the deployment's Athena.")
]
FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="table, line, csv, json, md or parquet; default: table, or line if a row is wider than"
        " the terminal.",
    ),
]


def sql(
    query: QueryArgument = None,
    query_file: QueryFileOption = None,
    at: AtOption = None,
    as_of: AsOfOption = None,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    engine: EngineOption = QueryEngine.DUCKDB,
    output_format: FormatOption = None,
    json_output: JsonOption = False,
) -> None:
    """Query the lake: TABLE, TABLE_changes, TABLE_current, TABLE_history, cdclake_quarantine.

    Without QUERY the statement comes from standard input; on a terminal a shell starts. Timestamps
    are in UTC. In JSON, decimals are strings and bytes are hexadecimal. --format parquet writes to
    standard output. With --target aws DuckDB reads the bucket with your credentials, or Athena runs
    the query in its own SQL.
    """
    chosen = _chosen_format(output_format, json_output)
    lake = _Engine(
        kind=engine, target=target, file=file, environment=environment, at=at, as_of=as_of
    )
    text = _text(query, query_file, chosen)
    if target is Target.LOCAL:
        check_local(file, environment)
    if text is None:
        _shell(lake, chosen)
    elif chosen is Format.PARQUET:
        _write_parquet(lake, text)
    else:
        _print(lake.run(text, _limit(chosen)), chosen)


def _chosen_format(output_format: Format | None, json_output: bool) -> Format | None:
    if not json_output:
        return output_format
    if output_format not in (None, Format.JSON):
        raise InputError(f"--json and --format {output_format} exclude each other", "choose one")
    return Format.JSON


def _text(query: str | None, file: Path | None, chosen: Format | None) -> str | None:
    """Return the statement; None for a shell, if there is none and a terminal."""
    if query is not None and file is not None:
        raise InputError("a query and --query-file exclude each other", "leave out one of the two")
    if file is not None:
        text = _read(file.read_bytes, str(file))
    elif query is not None:
        text = query
    elif sys.stdin.isatty():
        if chosen in (Format.PARQUET, Format.JSON):
            raise InputError(f"--format {chosen} needs a query", "add one, or -f FILE")
        if not sys.stdout.isatty():
            raise InputError("there is no query", "add one, or -f FILE")
        return None
    else:
        text = _read(sys.stdin.buffer.read, "standard input")
    if not text.strip():
        raise InputError("there is no query", "add one, -f FILE, or pipe it in")
    return text


def _read(read: Callable[[], bytes], name: str) -> str:
    """Return the text as it is: a literal may have a carriage return."""
    try:
        return read().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read {name}: {reading_failure(error)}", "give a file with one query"
        ) from None


def _limit(chosen: Format | None) -> int | None:
    return _MAX_SHOWN_ROWS if chosen is None or chosen in SHOWN else None


def _print(answer: Answer, chosen: Format | None) -> None:
    if chosen is Format.JSON:  # which has the warnings
        emit(answer.to_json(), True, lambda: None)
        return
    warn_all(answer.warnings)
    say_all(lines_of(answer, chosen, _width()))
    if chosen in (None, Format.TABLE, Format.LINE):
        say(footer(answer))


def _width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _write_parquet(lake: _Engine, query: str) -> None:
    if lake.kind is QueryEngine.ATHENA:
        raise InputError("Athena writes no Parquet here", "use --engine duckdb, or --format csv")
    if sys.stdout.isatty():
        raise InputError("Parquet is not for a terminal", "write it to a file: add > FILE.parquet")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        warn_all(lake.run(query, None, file).warnings)
        with file.open("rb") as rows, ending_with_reader():
            shutil.copyfileobj(rows, sys.stdout.buffer)
            sys.stdout.flush()


def _shell(lake: _Engine, chosen: Format | None) -> None:
    from cdclake.cli.sql_shell import Shell

    if lake.kind is QueryEngine.ATHENA:
        raise InputError("the shell needs --engine duckdb", "give Athena's query as an argument")
    with lake_reader_of(lake.target, lake.file, lake.environment) as reader:
        plan = reader.plan
    Shell(plan, lambda query: _print(lake.run(query, _limit(chosen)), chosen)).run()
