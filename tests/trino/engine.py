"""The bare Trino as an engine of `verify`: Athena's view over values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cdclake.iceberg.athena_views import current_select
from cdclake.iceberg.dialect import TRINO, Dialect
from cdclake.iceberg.incomplete_rows import incomplete_rows
from cdclake.jobs.verify.compared_rows import LakeRows
from cdclake.jobs.verify.engine_rows import EngineRows
from cdclake.local.trino.server import Trino
from cdclake.naming import current_name
from cdclake.plan import Plan, Table
from tests.trino.values import lake_values

Rows = Iterable[Mapping[str, Any]]


@dataclass
class TrinoOverValues:
    """One table's log, state and commits, which the server reads as values."""

    server: Trino
    plan: Plan
    log: Rows
    state: Rows = ()
    commits: Iterable[Any] = ()
    name: str = "trino"
    dialect: Dialect = TRINO

    def relation(self, table: Table) -> str:
        return TRINO.name(current_name(table.name))

    @contextmanager
    def open(self, tables: Collection[Table]) -> Iterator[LakeRows]:
        [table] = tables
        yield EngineRows(lambda statement: self._rows(table, statement), self._incomplete)

    def _rows(self, table: Table, statement: str) -> list[tuple[Any, ...]]:
        relations = lake_values(table, self.plan, self.log, self.state, self.commits)
        relations[current_name(table.name)] = current_select(table, self.plan)
        made = ",\n".join(f"{TRINO.name(name)} AS ({text})" for name, text in relations.items())
        query = f"WITH {made}\n{statement}"
        return self.server.rows(query.replace(f"{TRINO.name(self.plan.lake_database)}.", ""))

    def _incomplete(self, table: Table) -> str:
        changes, state = TRINO.name(table.changes), TRINO.name(table.name)
        return incomplete_rows(table, changes=changes, state=state, dialect=TRINO)
