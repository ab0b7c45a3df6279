"""A source to load from, and loads of one table of it by the job's own code."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdclake.jobs.bulk_load.exported_snapshot import ExportedSnapshot, exported_snapshot
from cdclake.jobs.bulk_load.load_source import LoadSource
from cdclake.jobs.bulk_load.loaded_rows import ReadPlace, first_offset, read_events
from cdclake.jobs.bulk_load.table_load import Loaded, TableLoad
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.plan import Plan, Table
from cdclake.postgres import bulk_read
from cdclake.postgres.event_values import is_json
from tests.recorded.recording import FOLDER
from tests.recorded.script import Statement, steps

_slots = count(1)


def statements(script: str, *, before_stream: bool = False) -> list[str]:
    """The recorded script's statements, or those before the connector's snapshot."""
    found = list(steps((FOLDER / f"{script}.sql").read_text()))
    if before_stream:
        found = list(takewhile(lambda step: isinstance(step, Statement), found))
    return [step.sql for step in found if isinstance(step, Statement)]


@dataclass
class BulkSource:
    """A database whose superuser loads."""

    spark: SparkSession
    dsn: str
    secrets: Path

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """The rows of the last statement; each is committed."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def jdbc(self) -> LoadSource:
        """The job's access to it."""
        parts = psycopg.conninfo.conninfo_to_dict(self.dsn)
        address = {
            "host": parts["host"], "port": parts["port"], "database": parts["dbname"],
            "user": parts["user"], "sslmode": "prefer",
            "password": f"${{file:{self.secrets}:password}}",
        }  # fmt: skip
        has_salt = "mask_salt=" in self.secrets.read_text()
        salt = f"${{file:{self.secrets}:mask_salt}}" if has_salt else ""
        return LoadSource(self.spark, json.dumps(address), salt)

    @contextmanager
    def reading(self, slot: str) -> Iterator[None]:
        """A client that streams from the slot, as the connector does."""
        dsn = psycopg.conninfo.make_conninfo(self.dsn, replication="database")
        reader = psycopg.pq.PGconn.connect(dsn.encode())
        options = f"proto_version '1', publication_names '{slot}'"
        reader.exec_(f"START_REPLICATION SLOT {slot} LOGICAL 0/0 ({options})".encode())
        try:
            yield
        finally:
            reader.finish()

    @contextmanager
    def snapshot(self, tables: Sequence[Table]) -> Iterator[ExportedSnapshot]:
        """The source as it is now, by a slot of its own."""
        slot = f"load_{next(_slots)}"
        try:
            with exported_snapshot(self.jdbc(), slot, tables) as snapshot:
                yield snapshot
        finally:
            self.run(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                f" WHERE slot_name = '{slot}'"
            )

    def exact_events(self, plan: Plan, snapshot: ExportedSnapshot, *, epoch: int = 1) -> DataFrame:
        """The rows of the plan's first table, all by the SQL expressions and Spark's conditions."""
        [table, *_] = plan.tables
        names = [bulk_read.value_name(index) for index, _ in enumerate(table.columns)]
        query = f"SELECT {', '.join(names)} FROM ({bulk_read.rows(table)}) AS r ORDER BY cdc__place"
        with snapshot.reader.batches(query) as batches:
            rows = pa.Table.from_batches(list(batches)).to_pylist()
        types = (c.column_type for c in table.columns)
        kinds = ["string" if is_json(each) else each.log for each in types]
        schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
        values = [(*row.values(), first_offset(epoch, 0) + at) for at, row in enumerate(rows)]
        frame = self.spark.createDataFrame(values, f"{schema}, cdc_offset bigint")
        place = ReadPlace(epoch=epoch, lsn=snapshot.lsn, read_at=snapshot.read_at)
        return read_events(frame, F.col("cdc_offset"), table, plan, place)

    def load(self, plan: Plan, snapshot: ExportedSnapshot, *, epoch: int = 1) -> Loaded:
        """Load the plan's first table."""
        lake = LakeTables(self.spark, plan.lake_database)
        return TableLoad(lake, plan, plan.tables[0], snapshot, epoch).run()
