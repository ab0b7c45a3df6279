"""A table on a real Iceberg catalog with a Hudi copy, and what readers see of the copy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from cdclake.hudi_copy import HudiCopy, HudiType
from cdclake.jobs.publish import hudi_writer
from cdclake.jobs.publish.publish import publish
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Plan
from tests.spark.events import Engine, FreeLeases, MemoryStore, plan_of
from tests.spark.hudi_jvm import rust_rows

COLUMNS = ("id", "v", "big")


@dataclass
class PublishedTable:
    """A table of one key, `id`, whose copy is partitioned by `big` unless said otherwise."""

    spark: SparkSession
    type: HudiType = "cow"
    partition_by: str | None = "big"
    plan: Plan = field(default_factory=plan_of)
    name: str = ""  # of the copy; empty: that of the table with `_hudi`

    def __post_init__(self) -> None:
        self.engine = Engine(self.spark, self.plan)
        self.event = self.engine.event

    @property
    def copy(self) -> HudiCopy:
        """The copy, as the pipeline file's resolution makes it."""
        name = self.engine.table.name
        return HudiCopy(
            name=self.name or f"{name}_hudi",
            table=name,
            type=self.type,
            partition_by=self.partition_by,
            schedule="rate(1 hour)",
        )

    @property
    def folder(self) -> Path:
        """The copy's folder."""
        home = self.spark.conf.get("spark.sql.catalog.lake.warehouse")
        return Path(f"{home}/cdc.db/{self.copy.name}")

    def publish(self) -> int:
        """Update the copy; the number of rows written or deleted."""
        plan = replace(self.engine.plan, copies=(self.copy,))
        job = TableJob(plan, self.engine.lake, FreeLeases(), MemoryStore(), named=False)  # type: ignore[arg-type]
        return publish(job, self.copy)

    def rows(self, columns: Sequence[str] = COLUMNS, **options: str) -> list[tuple[Any, ...]]:
        """The copy's rows by Spark."""
        read = self.spark.read.format("hudi").options(**options).load(str(self.folder))
        return sorted((tuple(row) for row in read.select(*columns).collect()), key=repr)

    def rust(self, columns: Sequence[str] = COLUMNS, **how: Any) -> list[tuple[Any, ...]]:
        """The copy's rows by hudi-rs."""
        return sorted(rust_rows(str(self.folder), columns, **how), key=repr)

    def expected(self) -> list[tuple[Any, ...]]:
        """The live rows of the state."""
        return sorted(((key, *row) for key, row in self.engine.state().items()), key=repr)

    def commits(self) -> dict[str, str]:
        """The operations of the completed commits by instant, the oldest first."""
        found = {}
        for path in sorted((self.folder / ".hoodie").iterdir()):
            if path.suffix in (".commit", ".deltacommit", ".replacecommit"):
                found[path.stem] = json.loads(path.read_text())["operationType"]
        return found

    def publish_and_fail(self) -> None:
        """Publish, and fail when all files are written and only the commit is missing."""
        validator = "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator"
        refused = {
            "hoodie.precommit.validators": validator,
            "hoodie.precommit.validators.single.value.sql.queries": (
                "SELECT count(*) FROM <TABLE_NAME>#-1"
            ),
        }
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(hudi_writer, "_FORMAT", {**hudi_writer._FORMAT, **refused})
            with pytest.raises(Py4JJavaError, match="validation"):
                self.publish()


def filled(table: PublishedTable) -> PublishedTable:
    """Three rows in two partitions and without one, which are published."""
    e = table.event
    table.engine.run(
        e("c", 10, 10, id=1, v="a", big="Peru"), e("c", 10, 11, id=2, v="b", big="A/B, 50 %"),
        e("c", 10, 12, id=3, v="c", big=None),
    )  # fmt: skip
    assert table.publish() == 3
    return table
