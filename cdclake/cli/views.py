"""`cdclake views`: print or create a deployment's views for Athena."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.activity import step
from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.target import DeploymentFile, EnvironmentOption, Target, TargetOption
from cdclake.errors import InputError

if TYPE_CHECKING:
    from cdclake.deployed.athena import WorkgroupClient
    from cdclake.derived_table import DerivedTable
    from cdclake.plan import Plan, Table


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

    With --target aws the deployment's workgroup runs them. Run it when the tables exist, again
    whenever columns or settings of `firehose:` have changed, and daily: queries of `<t>_current`
    skip the changelog from before the last run. Existing views are replaced. For derived tables it
    also prints, but never runs, the statements that compute them in Athena once.
    """
    from cdclake.config.deployment import load_deployment

    deployment = load_deployment(file, environment)
    plan = deployment.plan
    if "athena" not in plan.readers:
        raise InputError(
            f"{file} does not list Athena among `lake: readers:`",
            "add it there; the views are for Athena only",
        )
    tables = [plan.table(name, of="file") for name in table] if table else plan.all_tables
    if target is Target.AWS:
        answer = _make(deployment.prefix, plan, tables)
        emit(answer, json_output, lambda: _render_made(answer))
    else:
        answer = _printed(plan, tables, () if table else plan.derived)
        emit(answer, json_output, lambda: _render_sql(answer))
    if not answer["ok"]:
        raise typer.Exit(4)


def _printed(
    plan: Plan, tables: Iterable[Table], derived: Iterable[DerivedTable]
) -> dict[str, Any]:
    from cdclake.config.derived_athena import athena_statements
    from cdclake.iceberg.athena_views import athena_views

    return {
        "ok": True,
        "views": [
            {"view": name, "sql": sql}
            for table in tables
            for name, sql in athena_views(table, plan).items()
        ],
        "derived": [asdict(athena_statements(each, plan.lake_database)) for each in derived],
    }


def _make(workgroup: str, plan: Plan, tables: Iterable[Table]) -> dict[str, Any]:
    from cdclake.deployed.athena import WorkgroupClient
    from cdclake.iceberg.athena_views import athena_views

    athena = WorkgroupClient(workgroup)
    with step("create the views in Athena"):
        made = [
            {"view": name, "error": athena.run(sql)}
            for table in tables
            for name, sql in athena_views(
                table, plan, _applied_through(athena, table, plan)
            ).items()
        ]
    return {"ok": all(view["error"] is None for view in made), "views": made}


def _applied_through(athena: WorkgroupClient, table: Table, plan: Plan) -> int | None:
    """Return the bound of the table's tail; None if Athena cannot read the state's metadata."""
    from cdclake.iceberg.athena_views import tail_bound

    query = athena.start(tail_bound(table, plan))
    if athena.await_end(query) is not None:
        return None
    rows = athena.results(query)[1]
    return int(rows[0][0]) if rows and rows[0][0] is not None else None


def _render_made(answer: dict[str, Any]) -> None:
    for view in answer["views"]:
        say(f"{view['view']}: {view['error'] or 'created'}")


def _render_sql(answer: dict[str, Any]) -> None:
    for view in answer["views"]:
        say(f"{view['sql']};\n")
    for derived in answer["derived"]:
        say(f"{derived['create_table_as']};\n\n{derived['unload']};\n")
