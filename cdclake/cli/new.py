"""`cdclake new`: write a project with a pipeline file, a CDK app, tests and a CI workflow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.activity import step
from cdclake.cli.output import SOURCE_DSN_KEY, JsonOption, emit, given_source, say
from cdclake.errors import InputError

_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}[a-z0-9]")


def new(
    name: Annotated[str, typer.Argument(help="Name of the project, its folder and its pipeline.")],
    from_db: Annotated[
        str | None,
        typer.Option(
            "--from-db",
            envvar=SOURCE_DSN_KEY,
            help="DSN of a database whose tables the pipeline file gets, as by `cdclake init`;"
            " better in the environment variable, since other users see arguments; or `local`.",
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Write a project into a new folder: pipeline file, CDK app, tests and CI workflow.

    The project pins this version of cdclake. Its `app.py` builds the deployment and an example
    stack of your own. Without --from-db the pipeline file is an example with one table.
    """
    from cdclake.config.schema import render_schema
    from cdclake.scaffold.new_project import check_empty, project_files, write_project

    if _NAME.fullmatch(name) is None:
        raise InputError(
            f"invalid project name {name!r}",
            "use 2 to 21 lowercase letters, digits and hyphens; begin with a letter, and end with a"
            " letter or digit",
        )
    folder = Path.cwd() / name
    check_empty(folder)
    pipeline, refused = (None, []) if from_db is None else _read(name, from_db)
    files = project_files(name, render_schema(), pipeline)
    write_project(folder, files)
    answer = {"ok": True, "folder": str(folder), "files": sorted(files), "refused": refused}
    emit(answer, json_output, lambda: _render(name, answer))


def _read(name: str, dsn: str) -> tuple[str, list[dict[str, str]]]:
    """Return the text of the database's pipeline file, and the tables that it cannot have."""
    from cdclake.local.lake.introspect import introspect_tables
    from cdclake.local.lake.source_tls import secured
    from cdclake.postgres.pipeline_text import render_pipeline

    with step("read the database's tables"):
        database, proposals = introspect_tables(secured(given_source(dsn)), None)
    refused = [
        {"source": proposal.source.source, "reason": proposal.reason}
        for proposal in proposals
        if proposal.reason
    ]
    return render_pipeline(database, proposals, name=name), refused


def _render(name: str, answer: dict[str, Any]) -> None:
    say(f"{answer['folder']}: {len(answer['files'])} files")
    for table in answer["refused"]:
        say(f"  {table['source']} is a comment in the pipeline file: {table['reason']}")
    say(f"Next: cd {name}, and follow README.md; the tables are in pipelines/{name}.yaml")
