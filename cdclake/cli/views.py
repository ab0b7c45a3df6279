"""`cdclake views`: print or create a deployment's views for Athena."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.target import DeploymentFile, EnvironmentOption, Target, TargetOption
from cdclake.errors import InputError


def views(
    file: DeploymentFile,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Include only this table; repeatable.")
    ] = None,
    target: TargetOption = Target.LOCAL,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Print the statements that create `<t>_current` and `<t>_history` in Athena.

    With --target aws the deployment's workgroup runs them. Run it when the tables exist, and again
    whenever columns have changed: existing views are replaced.
    """
    from cdclake.config.deployment import load_deployment
    from cdclake.iceberg.athena_views import athena_views

    deployment = load_deployment(file, environment)
    plan = deployment.plan
    if "athena" not in plan.readers:
        raise InputError(
            f"{file} does not list Athena among `lake: readers:`",
            "add it there; the views are for Athena only",
        )
    tables = [plan.table(name, of="file") for name in table] if table else plan.tables
    statements = {
        name: statement
        for each in tables
        for name, statement in athena_views(each, plan.lake_database).items()
    }
    if target is Target.AWS:
        answer = _make(deployment.prefix, statements)
        emit(answer, json_output, lambda: _render_made(answer))
    else:
        answer = {"ok": True, "views": [{"view": n, "sql": s} for n, s in statements.items()]}
        emit(answer, json_output, lambda: _render_sql(statements))
    if not answer["ok"]:
        raise typer.Exit(4)


def _make(workgroup: str, statements: dict[str, str]) -> dict[str, Any]:
    from cdclake.deployed.athena import WorkgroupClient

    athena = WorkgroupClient(workgroup)
    made = [{"view": name, "error": athena.run(sql)} for name, sql in statements.items()]
    return {"ok": all(view["error"] is None for view in made), "views": made}


def _render_made(answer: dict[str, Any]) -> None:
    for view in answer["views"]:
        say(f"{view['view']}: {view['error'] or 'created'}")


def _render_sql(statements: dict[str, str]) -> None:
    for statement in statements.values():
        say(f"{statement};\n")
