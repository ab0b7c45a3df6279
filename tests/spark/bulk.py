"""A source to load from, and loads of one table of it by the job's own code."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from pyspark.sql import SparkSession

from cdclake.jobs.bulk_load.exported_snapshot import ExportedSnapshot, JdbcSource, exported_snapshot
from cdclake.jobs.bulk_load.table_load import Loaded, TableLoad
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.plan import Plan, Table

_slots = count(1)


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

    def jdbc(self) -> JdbcSource:
        """The job's access to it."""
        parts = psycopg.conninfo.conninfo_to_dict(self.dsn)
        address = {
            "host": parts["host"], "port": parts["port"], "database": parts["dbname"],
            "user": parts["user"], "sslmode": "prefer",
            "password": f"${{file:{self.secrets}:password}}",
        }  # fmt: skip
        has_salt = "mask_salt=" in self.secrets.read_text()
        salt = f"${{file:{self.secrets}:mask_salt}}" if has_salt else ""
        return JdbcSource(self.spark, json.dumps(address), salt)

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

    def load(self, plan: Plan, snapshot: ExportedSnapshot, *, epoch: int = 1) -> Loaded:
        """Load the plan's first table."""
        lake = LakeTables(self.spark, plan.lake_database)
        return TableLoad(lake, plan, plan.tables[0], snapshot, epoch).run()
