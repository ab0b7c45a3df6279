"""A reader over rows in memory, with the real view: what DuckDB shows of one table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import duckdb

from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.views import AppliedThrough, current_view
from cdclake.naming import current_name
from cdclake.plan import Plan, Table
from tests.unit.verify.lakes import create

Rows = Iterable[Mapping[str, Any]]


@dataclass
class SmallReader:
    """Log and state of one table."""

    plan: Plan
    log: Rows
    state: Rows = ()
    applied: AppliedThrough = field(default_factory=AppliedThrough)

    @contextmanager
    def open(self, tables: Collection[Table]) -> Iterator[duckdb.DuckDBPyConnection]:
        [table] = tables
        with duckdb.connect() as session:
            session.execute("SET TimeZone = 'UTC'")
            session.execute(f"CREATE SCHEMA {self.plan.lake_database}")
            session.execute(f"USE {self.plan.lake_database}")
            create(session, table, self.log, self.state)
            view = current_view(
                table, state=table.name, changes=table.changes, applied=self.applied,
                dialect=DUCKDB,
            )  # fmt: skip
            session.execute(f"CREATE VIEW {current_name(table.name)} AS {view}")
            yield session
