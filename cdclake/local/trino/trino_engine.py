"""Trino as an engine of the comparison: it runs the SELECT of Athena's `<t>_current`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trino.exceptions import TrinoQueryError

from cdclake.errors import ComponentFailed, InputError
from cdclake.iceberg.athena_views import current_select, tail_bound
from cdclake.iceberg.dialect import TRINO, Dialect
from cdclake.iceberg.incomplete_rows import incomplete_rows_in
from cdclake.iceberg.reader_facts import READER_FACTS
from cdclake.jobs.verify.compared_rows import LakeRows
from cdclake.jobs.verify.engine_rows import EngineRows
from cdclake.jobs.verify.report import Report
from cdclake.local.lake.lake import LocalLake
from cdclake.local.trino.lake_catalog import trino_of
from cdclake.local.trino.server import NAME, Trino
from cdclake.local.verify import verify_lake
from cdclake.naming import current_name
from cdclake.plan import Plan, Table


@dataclass(frozen=True, slots=True)
class TrinoEngine:
    """A server that reads the lake; each statement sees the current rows."""

    server: Trino
    plan: Plan
    name: str = NAME
    dialect: Dialect = TRINO

    def relation(self, table: Table) -> str:
        """Return the SELECT of the view with a literal bound, as `cdclake views` stores it on AWS.

        In a FROM clause it replaces the view, so that nothing is stored in the lake's catalog.
        """
        [[since]] = self._ask(tail_bound(table, self.plan))
        select = current_select(table, self.plan, since)
        return f"({select}) AS {TRINO.name(current_name(table.name))}"

    @contextmanager
    def open(self, _tables: Collection[Table]) -> Iterator[LakeRows]:
        """Return the rows that the SELECTs show."""
        yield EngineRows(self._ask, self._incomplete)

    def _ask(self, statement: str) -> list[tuple[Any, ...]]:
        try:
            return self.server.rows(statement)
        except TrinoQueryError as error:
            raise ComponentFailed(
                f"Trino could not compare the rows: {error.message}",
                "run verify again; if that fails too, use --reader duckdb or --reader spark",
                component=NAME,
            ) from error

    def _incomplete(self, table: Table) -> str:
        return incomplete_rows_in(self.plan.lake_database, table)


def verify_in_trino(
    lake: LocalLake, wait_s: float, table: str | None, sample: int | None, *, deep: bool
) -> Report:
    """Compare the source with what a Trino shows that runs for as long as this takes.

    Raises:
        InputError: if Trino cannot read the lake's tables, or its jars are missing
        ComponentFailed: if Trino does not start, or refuses a statement
    """
    facts, version = READER_FACTS["trino"], lake.plan.format_version
    if version not in facts.formats:
        raise InputError(
            f"{facts.title} cannot read format version {version}, which the lake's tables have",
            "use --reader duckdb or --reader spark",
        )
    with (
        TemporaryDirectory(prefix="cdclake-trino-") as folder,
        trino_of(lake.home, lake.endpoints, Path(folder)) as server,
    ):
        engine_of = partial(TrinoEngine, server)
        return verify_lake(lake, wait_s, table, sample, deep=deep, engine_of=engine_of)
