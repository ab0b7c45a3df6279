"""`cdclake rehearse`: try a migration on a lake that is removed afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.cli.output import JsonOption, emit, say


def rehearse(
    file: Annotated[Path, typer.Argument(help="Pipeline file.")],
    schema: Annotated[
        Path, typer.Option("--schema", help="SQL file with the tables, for example of pg_dump.")
    ],
    migration: Annotated[
        Path, typer.Option("--migration", help="SQL file with the change to rehearse.")
    ],
    json_output: JsonOption = False,
) -> None:
    """Run a migration against a temporary lake, and report what each table of the lake does.

    The lake starts with the schema's tables and rows in its own PostgreSQL; nothing is read from
    your database. Without rows in the dump only columns and keys are compared. The lake is removed
    at the end. Exit code 1: a table stops, or differs from the source.
    """
    from cdclake.local.demo.workspace import temporary_home
    from cdclake.local.process.home import Home
    from cdclake.local.rehearsal import rehearse as run
    from cdclake.postgres.sql_script import read_script

    for script in (schema, migration):
        read_script(script)  # before anything is started
    base = Home.from_environment().path
    with temporary_home(base, keep=False) as home:
        answer = run(home, file.resolve(), schema, migration)
    emit(answer, json_output, lambda: _render(answer))
    if not answer["ok"]:
        raise typer.Exit(1)


def _render(answer: dict[str, Any]) -> None:
    say(f"{answer['statements']} statements of the migration were run")
    for table in answer["tables"]:
        say(f"{table['table']}: {table['outcome']}")
        if table["error"]:
            say(f"  {table['error']}")
        for change in table["changes"]:
            say(f"  {change['message']}; {change['remedy']}")
        if table["equal"] is None and answer["obstacle"]:
            say(f"  not compared: {answer['obstacle']}")
        if table["untouched"]:
            say(f"  no event was made: {table['untouched']}")
