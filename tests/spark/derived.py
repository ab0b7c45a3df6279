"""Three joined tables on a real Iceberg catalog, and a derived table over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from cdclake.config.derived_sql import SourceColumns, analyze
from cdclake.derived_table import DerivedTable, FileFormat
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.derived.refresh import refresh
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Plan
from tests.spark.events import Engine, FreeLeases, MemoryStore, plan_of

JOINED = """
    SELECT a.id AS address_id, a.v AS street, c.id AS city_id, c.v AS city, k.id AS country_id,
           k.v AS country, 'test' AS origin
    FROM {address}_current AS a
    JOIN {city}_current AS c ON c.id = CAST(a.big AS BIGINT)
    LEFT JOIN {country}_current AS k ON k.id = CAST(c.big AS BIGINT)
"""
# The ids are equal in rows with a country alone.
HALF_EQUAL = """
    SELECT a.id AS address_id, c.v AS city, k.v AS country
    FROM {address}_current AS a
    JOIN {city}_current AS c ON c.id = a.big
    LEFT JOIN {country}_current AS k ON k.id = a.id AND k.id = a.big
"""
# A city loses its row when a country arrives that is left out.
LEFT_OUT = """
    SELECT c.id AS city_id, k.id AS country_id, k.v AS country
    FROM {city}_current AS c
    LEFT JOIN {country}_current AS k ON k.id = CAST(c.big AS BIGINT)
    WHERE k.v IS NULL OR k.v <> 'x'
"""


@dataclass
class DerivedLake:
    """Tables address, city and country: `v` is a name, `big` the id of the next table's row."""

    spark: SparkSession
    sql: str = JOINED
    key: tuple[str, ...] = ("address_id",)
    partition_by: tuple[str, ...] = ()
    format: FileFormat = "iceberg"
    control: MemoryStore = field(default_factory=MemoryStore)
    leases: Leases = field(default_factory=FreeLeases)

    def __post_init__(self) -> None:
        plans = [plan_of(replica_identity="full") for _ in range(3)]
        self.address, self.city, self.country = (Engine(self.spark, plan) for plan in plans)
        self.sources = [plan.tables[0] for plan in plans]

    @cached_property
    def names(self) -> dict[str, str]:
        """The tables' names in the lake."""
        return dict(
            zip(("address", "city", "country"), [t.name for t in self.sources], strict=True)
        )

    @property
    def table(self) -> DerivedTable:
        """The derived table, as the pipeline file's resolution makes it."""
        sql = self.sql.format(**self.names)
        columns = ("id", "v", "big")
        sources = [SourceColumns(t.name, t.key, columns) for t in self.sources]
        facts = analyze(sql, sources, self.key)
        return DerivedTable(
            name=f"derived_{self.names['address']}",
            sql=sql,
            key=self.key,
            partition_by=self.partition_by,
            format=self.format,
            schedule="rate(1 hour)",
            sources=facts.sources,
            source_keys=facts.source_keys,
        )

    @property
    def job(self) -> TableJob:
        """The job's inputs and services."""
        plan: Plan = replace(self.address.plan, tables=tuple(self.sources), derived=(self.table,))
        return TableJob(plan, self.address.lake, self.leases, self.control, named=False)  # type: ignore[arg-type]

    def refresh(self) -> int:
        """Refresh the table; the number of rows written or deleted."""
        return refresh(self.job, self.table)

    def rows(self) -> list[tuple[Any, ...]]:
        """The stored rows, in the order of their keys."""
        stored = self.address.lake.read(self.table.name)
        return sorted((tuple(row) for row in stored.collect()), key=repr)

    def snapshots(self) -> Sequence[str]:
        """The operations of the table's snapshots, oldest first."""
        name = self.address.lake.qualified(self.table.name)
        listed = self.spark.sql(f"SELECT operation FROM {name}.snapshots ORDER BY committed_at")
        return [row["operation"] for row in listed.collect()]


def refreshes(engine: Engine, columns: str = "id, v") -> Callable[[], list[tuple[Any, ...]]]:
    """Return what refreshes a derived table of the engine's rows, and returns its rows."""
    table = engine.table
    derived = DerivedTable(
        name=f"derived_{table.name}",
        sql=f"SELECT {columns} FROM {table.name}_current",
        key=("id",),
        schedule="rate(1 hour)",
        sources=(table.name,),
        source_keys={table.name: {"id": "id"}},
    )
    plan = replace(engine.plan, derived=(derived,))
    store = MemoryStore()
    job = TableJob(plan, engine.lake, FreeLeases(), store, named=False)  # type: ignore[arg-type]

    def refreshed() -> list[tuple[Any, ...]]:
        refresh(job, derived)
        stored = engine.lake.read(derived.name).collect()
        return sorted(tuple(row) for row in stored)

    return refreshed
