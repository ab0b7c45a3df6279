"""`cdclake views`: print the views for Athena and Trino, or create them in Athena."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.activity import step
from cdclake.cli.output import JsonOption, emit, emit_outcome, say
from cdclake.cli.table_answers import listed
from cdclake.cli.target import DeploymentFile, EnvironmentOption, Target, TargetOption
from cdclake.errors import CdcError, ComponentFailed, InputError
from cdclake.iceberg.reader_facts import READER_FACTS, VIEW_READERS, ReaderName

if TYPE_CHECKING:
    from cdclake.deployed.athena import WorkgroupClient
    from cdclake.derived_table import DerivedTable
    from cdclake.plan import Plan, Table

_ATHENA: ReaderName = "athena"


def views(
    file: DeploymentFile,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Include only this table; repeatable.")
    ] = None,
    target: TargetOption = Target.LOCAL,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Print the statements that create `<t>_current` and `<t>_history` in Athena or Trino.

    With --target aws, create or replace the views in Athena, with the types that the source has
    widened; printed statements use the types of the file. Run it when the tables exist, and again
    after a change of columns, column types or settings of `firehose:`. The jobs then renew a lower
    bound in these views, so that their queries read little of the changelog; views created from
    printed statements have no such bound. For derived tables, also print (never run) statements
    that compute them once in Athena.
    """
    if target is Target.AWS:
        from cdclake.deployed.deployed_lake import DeployedLake

        lake = DeployedLake(file, environment)
        _require_reader(file, lake.plan, (_ATHENA,))
        tables = _chosen(lake.plan, table)
        answer = _make(lake.deployment.prefix, lake.plan, tables)
        emit_outcome(answer, json_output, lambda: _render_made(answer), _failure(answer))
    else:
        from cdclake.config.deployment import load_deployment

        plan = load_deployment(file, environment).plan
        _require_reader(file, plan, VIEW_READERS)
        derived = () if table or _ATHENA not in plan.readers else plan.derived
        answer = _printed(plan, _chosen(plan, table), derived)
        emit(answer, json_output, lambda: _render_sql(answer))


def _require_reader(file: Path, plan: Plan, allowed: Sequence[ReaderName]) -> None:
    """Raise InputError unless the file lists one of these engines."""
    if set(allowed).isdisjoint(plan.readers):
        titles = " or ".join(READER_FACTS[name].title for name in allowed)
        by_hand = (
            "; without --target aws the command prints the views for Trino"
            if "trino" in plan.readers
            else ""
        )
        raise InputError(
            f"{file} does not list {titles} among `lake: readers:`", f"add it there{by_hand}"
        )


def _chosen(plan: Plan, names: list[str] | None) -> Sequence[Table]:
    return [plan.table(name, of="file") for name in names] if names else plan.all_tables


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
    made = []
    for table in tables:
        with step(f"create the views of {table.name} in Athena"):
            applied, reason = _applied_through(athena, table, plan)
            views = [
                {"view": name, "error": athena.run(sql)}
                for name, sql in athena_views(table, plan, applied).items()
            ]
        if reason is not None:
            views[0]["warning"] = _unbounded(table, reason)
        made += views
    return {"ok": all(view["error"] is None for view in made), "views": made}


def _failure(answer: dict[str, Any]) -> CdcError | None:
    """Return the failure of statements that Athena refused."""
    names = [view["view"] for view in answer["views"] if view["error"] is not None]
    if not names:
        return None
    return ComponentFailed(
        f"Athena did not create {listed(names)}",
        "fix what `error` of each view names, then run the command again",
        component="athena",
    )


def _applied_through(
    athena: WorkgroupClient, table: Table, plan: Plan
) -> tuple[int | None, str | None]:
    """Return the bound of the table's tail, or the reason why Athena cannot read it."""
    from cdclake.iceberg.athena_views import tail_bound

    query = athena.start(tail_bound(table, plan))
    error = athena.await_end(query)
    if error is not None:
        return None, error
    rows = athena.results(query)[1]
    if not rows or rows[0][0] is None:
        return None, "the query of the state's metadata has no result"
    return int(rows[0][0]), None


def _unbounded(table: Table, reason: str) -> str:
    return (
        f"without a lower bound, since Athena cannot read the metadata of {table.name}: {reason};"
        " queries of the view may read the whole changelog: fix the cause, then run the command"
        " again"
    )


def _render_made(answer: dict[str, Any]) -> None:
    for view in answer["views"]:
        say(f"{view['view']}: {view['error'] or 'created'}")
        if "warning" in view:
            say(f"  {view['warning']}")


def _render_sql(answer: dict[str, Any]) -> None:
    for view in answer["views"]:
        say(f"{view['sql']};\n")
    for derived in answer["derived"]:
        say(f"{derived['create_table_as']};\n\n{derived['unload']};\n")
