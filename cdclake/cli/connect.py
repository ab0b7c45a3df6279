"""`cdclake connect`: a program that reads this lake with another engine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdclake.cli.output import JsonOption, emit, say
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
    from cdclake.plan import Plan
    from cdclake.reader_snippets import LocalAccess


class SnippetEngine(StrEnum):
    """Engine of a snippet."""

    DUCKDB = "duckdb"
    PYICEBERG = "pyiceberg"
    SPARK = "spark"
    TRINO = "trino"


def connect(
    engine: Annotated[SnippetEngine, typer.Argument(help="Engine that reads the lake.")],
    table: Annotated[
        str | None, typer.Option(help="Table of the example; default: the first of the lake.")
    ] = None,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    region: Annotated[
        str | None, typer.Option(help="Region of the deployment; default: `aws: region`.")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Print a program, for Trino the properties of a catalog, that reads this lake.

    It contains no secret: a local one names the file with the lake's credentials, that of a
    deployment uses your AWS profile. It reads the changes applied so far.
    """
    from cdclake.reader_snippets import SNIPPETS, SnippetTarget

    plan, place, local = (
        _deployed(file, environment, region)
        if target is Target.AWS
        else _local(file, environment, region)
    )
    if not plan.all_tables:
        raise InputError(
            "the pipeline has no table with a state", "query its tables with `cdclake sql`"
        )
    chosen = plan.all_tables[0] if table is None else plan.table(table)
    lake = SnippetTarget(database=plan.lake_database, table=chosen.name, region=place, local=local)
    snippet = SNIPPETS[engine.value](lake)
    answer = {"ok": True, "engine": engine.value, "table": chosen.name, "snippet": snippet}
    emit(answer, json_output, lambda: say(snippet.rstrip()))


def _local(
    file: Path | None, environment: str | None, region: str | None
) -> tuple[Plan, str, LocalAccess]:
    from cdclake.local.components.installed import REGION, jar_folder
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.reader_snippets import LocalAccess

    check_local(file, environment)
    if region is not None:
        raise InputError("--region needs --target aws", "add --target aws, or omit --region")
    home = Home.from_environment()
    lake = open_lake(home)
    access = LocalAccess(
        endpoint=lake.s3,
        credentials=str(home.clients / "aws.ini"),
        jars=f"{jar_folder('spark')}/*",
    )
    return lake.plan, REGION, access


def _deployed(
    file: Path | None, environment: str | None, region: str | None
) -> tuple[Plan, str, None]:
    from cdclake.config.deployment import load_deployment

    found = load_deployment(deployed_file(file), environment)
    chosen = region or found.aws.region
    if chosen is None:
        raise InputError(f"{found.file} names no region", "add --region REGION, or `aws: region:`")
    return found.plan, chosen, None
