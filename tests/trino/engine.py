"""The bare Trino as an engine of `verify`: the lake's tables are values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cdclake.iceberg.dialect import TRINO
from cdclake.local.trino.server import Trino
from cdclake.local.trino.trino_engine import TrinoEngine
from cdclake.plan import Plan, Table
from tests.trino.values import lake_values

Rows = Iterable[Mapping[str, Any]]


@dataclass
class ServerOverValues:
    """Log, state and commits of the table that a statement names, read as values."""

    server: Trino
    plan: Plan
    log: Rows
    state: Rows = ()
    commits: Iterable[Any] = ()

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        [table] = [each for each in self.plan.all_tables if _names(statement, each)]
        relations = lake_values(table, self.plan, self.log, self.state, self.commits)
        made = ",\n".join(f"{TRINO.name(name)} AS ({text})" for name, text in relations.items())
        query = f"WITH {made}\n{statement}"
        return self.server.rows(query.replace(f"{TRINO.name(self.plan.lake_database)}.", ""))


def _names(statement: str, table: Table) -> bool:
    return any(TRINO.name(name) in statement for name in (table.changes, f"{table.name}$snapshots"))


def over_values(
    server: Trino, plan: Plan, log: Rows, state: Rows = (), commits: Iterable[Any] = ()
) -> TrinoEngine:
    """The engine of a lake of these values."""
    return TrinoEngine(ServerOverValues(server, plan, log, state, commits), plan)  # type: ignore[arg-type]
