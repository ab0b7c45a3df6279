"""`cdclake dbt`: the lake's tables as sources of a dbt project."""

from __future__ import annotations

from typing import Annotated

import typer

from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.target import DeploymentEnvironment, DeploymentFile


def dbt(
    file: DeploymentFile,
    environment: DeploymentEnvironment = None,
    database: Annotated[
        str, typer.Option(help="Name of the catalog in the dbt adapter.")
    ] = "awsdatacatalog",
    warn_after_hours: Annotated[
        int, typer.Option(min=1, help="Hours without a change until dbt warns.")
    ] = 24,
    json_output: JsonOption = False,
) -> None:
    """Print dbt's `sources.yml`: rows and changelog of each table, with tests and freshness.

    Write it to a file below the project's `models/`. The views `<t>_current` must exist
    (`cdclake views`); they are listed if Athena or Trino is among `lake: readers:`.
    """
    from cdclake.config.dbt_sources import as_yaml, dbt_sources
    from cdclake.config.deployment import load_deployment

    plan = load_deployment(file, environment).plan
    content = dbt_sources(plan, database, warn_after_hours)
    emit({"ok": True, **content}, json_output, lambda: say(as_yaml(content).rstrip()))
