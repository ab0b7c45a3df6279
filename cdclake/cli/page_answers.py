"""Answers of the local page, by name: what other commands print with --json, for either target."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdclake.cli.cost import cost_answer
from cdclake.cli.snapshots import snapshots_answer
from cdclake.cli.status import local_status
from cdclake.cli.target import Target, deployment_options, lake_reader_of, quarantine_of
from cdclake.errors import InputError

if TYPE_CHECKING:
    from cdclake.plan import Table
    from cdclake.ui.page_server import Answer, Query

# Seconds between two readings; a deployment is read by some calls of AWS for each table.
_LOCAL_REFRESH_S, _AWS_REFRESH_S = 2, 6
_MAX_EVENTS = 100
_LASTING_TRIGGERS = 1.5  # an event waits for one trigger, and for the batch


def local_answers() -> dict[str, Answer]:
    """Return the answers about the running lake; raise NotRunning if there is none."""
    from cdclake.config.column_lines import Lines
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home
    from cdclake.local.status import with_components
    from cdclake.local.trace.gather import trace_row
    from cdclake.trace.trace_report import trace_report
    from cdclake.ui.overview import MIN_LASTING_LAG_S, Overview

    home = Home.from_environment()
    about = {"target": "local", "refresh_s": _LOCAL_REFRESH_S}
    trigger_s = open_lake(home).plan.trigger_seconds
    overview = Overview(
        local_status,
        about,
        with_components=partial(with_components, home),
        lasting_lag_s=max(MIN_LASTING_LAG_S, _LASTING_TRIGGERS * trigger_s),
    )

    def table(query: Query) -> dict[str, Any]:
        lake = open_lake(home)
        declared = lake.plan.table(_one(query, "table"))
        lines = Lines(lake.state.pipeline_file)
        return _table_answer(declared, lake.state.pipeline_file, partial(lines.of, declared))

    def trace(query: Query) -> dict[str, Any]:
        key = _many(query, "key")
        return trace_report(trace_row(open_lake(home), _one(query, "table"), key))

    return {
        "overview": lambda _: overview.answer(),
        "table": table,
        "snapshots": partial(_snapshots, Target.LOCAL, None, None),
        "quarantine": partial(_quarantine, Target.LOCAL, None, None),
        "trace": trace,
        "jobs": lambda _: {"ok": True, "jobs": overview.answer().get("schedules", [])},
    }


def deployed_answers(file: Path, environment: str | None) -> dict[str, Answer]:
    """Return the answers about a deployment; its source and its Kafka are not asked.

    Each answer reads the file and the deployment again, which may have changed since.
    """
    from cdclake.config.column_lines import Lines
    from cdclake.deployed.deployed_lake import DeployedLake
    from cdclake.deployed.deployed_status import deployed_status
    from cdclake.deployed.deployed_trace import trace_deployed_row
    from cdclake.deployed.job_runs import newest_runs
    from cdclake.trace.trace_report import trace_report
    from cdclake.ui.overview import Overview

    open_deployed = partial(DeployedLake, file, environment)
    about = {"target": "aws", "refresh_s": _AWS_REFRESH_S, "file": str(file)}
    overview = Overview(lambda: deployed_status(open_deployed()), about)

    def table(query: Query) -> dict[str, Any]:
        declared = open_deployed().plan.table(_one(query, "table"))
        line = partial(Lines(str(file), environment).of, declared)
        return _table_answer(declared, str(file), line)

    def trace(query: Query) -> dict[str, Any]:
        facts = trace_deployed_row(open_deployed(), _one(query, "table"), _many(query, "key"))
        return trace_report(facts, deployment_options(file, environment))

    return {
        "overview": lambda _: overview.answer(),
        "table": table,
        "trace": trace,
        "snapshots": partial(_snapshots, Target.AWS, file, environment),
        "quarantine": partial(_quarantine, Target.AWS, file, environment),
        "jobs": lambda _: {"ok": True, "jobs": newest_runs(open_deployed())},
        "cost": lambda _: cost_answer(file, environment),
    }


def _table_answer(table: Table, file: str, line: Callable[[str], int | None]) -> dict[str, Any]:
    from cdclake.ui.column_path import column_path

    return {
        "ok": True,
        "table": table.name,
        "source": table.source,
        "key": list(table.key),
        "file": file,
        "columns": column_path(table, line),
        "excluded": list(table.excluded),
    }


def _snapshots(
    target: Target, file: Path | None, environment: str | None, query: Query
) -> dict[str, Any]:
    with lake_reader_of(target, file, environment) as reader:
        return snapshots_answer(reader, _one(query, "table"))


def _quarantine(
    target: Target, file: Path | None, environment: str | None, query: Query
) -> dict[str, Any]:
    from cdclake.local.quarantined_events import quarantined_events

    with quarantine_of(target, file, environment) as found:
        return quarantined_events(found, _optional(query, "table"), _MAX_EVENTS)


def _one(query: Query, name: str) -> str:
    return _many(query, name)[0]


def _many(query: Query, name: str) -> list[str]:
    if not query.get(name):
        raise InputError(f"{name} is missing", f"give {name}")
    return list(query[name])


def _optional(query: Query, name: str) -> str | None:
    return query[name][0] if query.get(name) else None
