"""`cdclake validate`: report every problem of a pipeline file, offline."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.cli.aligned import counted
from cdclake.cli.output import JsonOption, emit, emit_outcome, error_object, say
from cdclake.firehose.throttle_notes import throttle_notes
from cdclake.iceberg.collapse import history_notes
from cdclake.iceberg.metadata_size import changelog_metadata
from cdclake.iceberg.reader_notes import reader_notes

if TYPE_CHECKING:
    from cdclake.config.problems import InvalidPipeline
    from cdclake.errors import InputError
    from cdclake.plan import Plan


def validate(
    file: Annotated[Path, typer.Argument(help="Pipeline file to check.")],
    environment: Annotated[
        str | None,
        typer.Option(
            help="Environment to check as it is deployed; the problems of all environments are"
            " listed in any case."
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Check a pipeline file offline and list every problem with its line and remedy."""
    from cdclake.config.deployment import load_deployment
    from cdclake.config.problems import InvalidPipeline
    from cdclake.config.resolve import load_plan
    from cdclake.errors import InputError

    try:
        deployed = None if environment is None else load_deployment(file, environment)
        plan = load_plan(file) if deployed is None else deployed.plan
    except InvalidPipeline as invalid:
        refused = invalid
        emit(_refusal(refused), json_output, lambda: _render_problems(refused))
        raise typer.Exit(invalid.exit_code) from None
    except InputError as unknown:  # the environment
        emit_outcome(_unknown_environment(file, unknown), json_output, lambda: None, unknown)
        return
    emit(_summary(plan), json_output, lambda: _render_plan(file, plan))


def _refusal(invalid: InvalidPipeline) -> dict[str, Any]:
    problems = [asdict(problem) for problem in invalid.problems]
    return {**error_object(invalid), "file": invalid.file, "problems": problems}


def _unknown_environment(file: Path, error: InputError) -> dict[str, Any]:
    from cdclake.config.problems import Problem
    from cdclake.config.yaml_reader import read_document

    place = read_document(file).place(("environments",))
    problem = Problem(*place, error.message, error.remedy)
    return {"ok": False, "file": str(file), "problems": [asdict(problem)]}


def _render_problems(invalid: InvalidPipeline) -> None:
    for problem in invalid.problems:
        say(problem.render(invalid.file))


def _summary(plan: Plan) -> dict[str, Any]:
    size = changelog_metadata(plan)
    tables = [{"source": table.source, "table": table.name} for table in plan.all_tables]
    logs = [{"web_logs": each.name, "tables": [*each.tables]} for each in plan.web_logs]
    return {
        "ok": True,
        "problems": [],
        "name": plan.name,
        "tables": tables,
        "web_logs": logs,
        "puts": [{"puts": each.name, "tables": [*each.tables]} for each in plan.puts],
        "changelog_metadata": asdict(size),
        "notes": _notes(plan),
    }


def _notes(plan: Plan) -> list[str]:
    return [*history_notes(plan), *reader_notes(plan), *throttle_notes(plan)]


def _render_plan(file: Path, plan: Plan) -> None:
    columns = sum(len(table.columns) for table in plan.all_tables)
    say(f"{file}: valid")
    if plan.all_tables:
        say(
            f"pipeline {plan.name}: {counted(len(plan.all_tables), 'table')},"
            f" {counted(columns, 'column')}, database {plan.source_database} ->"
            f" {plan.lake_database}"
        )
        size = changelog_metadata(plan)
        say(
            f"a changelog keeps up to {size.snapshots:,} snapshots, about {size.kilobytes:,} kB of"
            " metadata that each commit writes"
        )
    for note in _notes(plan):
        say(f"note: {note}")
    for logs in plan.web_logs:
        say(f"web logs {logs.name} -> {plan.lake_database}: {', '.join(logs.tables)}")
    for put in plan.puts:
        for table in put.targets:
            routed = "" if put.route is None else f", {put.route} {' or '.join(table.values)}"
            say(
                f"put table {plan.lake_database}.{table.name}:"
                f" {counted(len(table.columns), 'column')} from {put.name}{routed}"
            )
