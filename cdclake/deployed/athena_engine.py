"""Athena as an engine of the comparison, and what `verify` adds to the job's report with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cdclake.deployed.athena import WorkgroupClient
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.deployed_lake import DeployedLake
from cdclake.errors import InputError
from cdclake.iceberg.dialect import TRINO, Dialect
from cdclake.iceberg.incomplete_rows import incomplete_rows_in
from cdclake.jobs.verify.view_rows import compare_engines
from cdclake.naming import current_name
from cdclake.plan import Table

if TYPE_CHECKING:
    from cdclake.jobs.verify.compared_rows import LakeRows

_NOT_IN_FILE = "not compared in Athena: the pipeline file does not have this deployed table"
_COUNTS = ("missing", "extra", "different", "unsettled", "withheld", "incomplete")


@dataclass(frozen=True, slots=True)
class AthenaEngine:
    """The deployment's workgroup, which reads the views that `cdclake views` has created."""

    workgroup: WorkgroupClient
    database: str
    name: str = "athena"
    dialect: Dialect = TRINO

    def relation(self, table: Table) -> str:
        """Return the qualified name of the table's view."""
        return f"{TRINO.name(self.database)}.{TRINO.name(current_name(table.name))}"

    @contextmanager
    def open(self, _tables: Collection[Table]) -> Iterator[LakeRows]:
        """Return the rows that the views show; each statement sees the current ones."""
        from cdclake.jobs.verify.engine_rows import EngineRows

        yield EngineRows(self._ask, self._incomplete)

    def _ask(self, statement: str) -> list[list[str | None]]:
        execution = self.workgroup.start(statement, self.database)
        error = self.workgroup.await_end(execution)
        if error is not None:
            raise InputError(
                f"Athena could not compare the rows: {error}",
                "if a view is missing or stale, run `cdclake views FILE --target aws`; then run"
                " verify again",
            )
        return self.workgroup.results(execution)[1]

    def _incomplete(self, table: Table) -> str:
        return incomplete_rows_in(self.database, table)


def check_views(lake: DeployedLake, chosen: str | None) -> None:
    """Raise InputError if Athena lacks the view of a stored table, before a job is run."""
    if "athena" not in lake.plan.readers:
        raise InputError(
            "the pipeline file does not list Athena among `lake: readers:`",
            "add it there, or compare with --reader duckdb",
        )
    with explained(lake.name, "list the tables of the lake for"):
        stored = lake.catalog.names()
    views = [
        current_name(table.name)
        for table in lake.plan.all_tables
        if chosen in (None, table.name, table.source) and table.name in stored
    ]
    if missing := [view for view in views if view not in stored]:
        raise InputError(
            f"these views do not exist in {lake.plan.lake_database}: {', '.join(missing)}",
            "run `cdclake views FILE --target aws`, then verify again",
        )


def compare_athena(
    lake: DeployedLake, names: Collection[str], sample: int | None
) -> dict[str, Any]:
    """Compare Athena's `_current` with DuckDB's; return a report of `verify`.

    Only named tables that the file has are compared: the deployed plan may have others.
    """
    plan = lake.plan
    tables = [table for table in plan.all_tables if table.name in names]
    engine = AthenaEngine(WorkgroupClient(lake.deployment.prefix), plan.lake_database)
    with TemporaryDirectory() as spill:
        return compare_engines(lake.reader(Path(spill)), tables, engine, sample).to_json()


def with_answers(report: dict[str, Any], answered: dict[str, Any]) -> dict[str, Any]:
    """Return the report of source and lake with the differences between lake and engine added."""
    of_engine = {table["table"]: table for table in answered["tables"]}
    return {
        **report,
        "ok": report["ok"] and answered["ok"] and len(of_engine) == len(report["tables"]),
        "reader": answered["reader"],
        "tables": [_with(table, of_engine.get(table["table"])) for table in report["tables"]],
        "rounds": report["rounds"] + answered["rounds"],
        "seconds": round(report["seconds"] + answered["seconds"], 2),
    }


def _with(table: dict[str, Any], of_engine: dict[str, Any] | None) -> dict[str, Any]:
    if of_engine is None:
        return {**table, "error": table["error"] or _NOT_IN_FILE}
    counts = {kind: table.get(kind, 0) + of_engine[kind] for kind in _COUNTS}
    examples: Sequence[Any] = [*table["first"], *of_engine["first"]]
    seconds = round(table["seconds"] + of_engine["seconds"], 2)
    return {
        **table,
        **counts,
        "lake_rows": of_engine["lake_rows"],
        "first": examples,
        "seconds": seconds,
        "error": table["error"] or of_engine["error"],
    }
