"""A table of a real PostgreSQL that is polled into a lake, for the tests of polls."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.control_objects import PollProgress, poll_name
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.views import current_view
from cdclake.jobs.apply.rebuilt_state import applied_through
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.poll.polled_snapshot import SourceLogin
from cdclake.jobs.poll.table_poll import TablePoll
from cdclake.jobs.runtime.metrics import Metrics, Values
from cdclake.metrics import QUARANTINED
from cdclake.plan import Column, Table
from cdclake.polling import Polling
from tests.spark.events import MemoryStore, plan_of

COLUMNS = tuple(
    Column(source=name, name=name, type=kind)
    for name, kind in (
        ("id", "bigint"),
        ("v", "text"),
        ("amount", "numeric(6,2)"),
        ("at", "timestamptz"),
    )
)


class LastMetrics(Metrics):
    """Metrics of a deployment that keep the last number of refused rows."""

    def __init__(self) -> None:
        super().__init__("shop")
        self.quarantined = 0.0

    def _put(self, values: Values) -> None:
        self.quarantined = values[QUARANTINED]


@dataclass
class PolledTable:
    """Table of the source whose column `at` says when a row was written, and its polls."""

    spark: SparkSession
    dsn: str
    settings: dict[str, Any] = field(default_factory=dict)
    control: MemoryStore = field(default_factory=MemoryStore)
    metrics: LastMetrics = field(default_factory=LastMetrics)
    create: bool = True

    def __post_init__(self) -> None:
        polling = Polling(**{"by": "at", "every": "rate(5 minutes)", **self.settings})
        plan = plan_of(columns=COLUMNS, delivery="poll", polling=polling, replica_identity="full")
        self.plan = replace(plan, tables=(), polled=plan.tables)
        if self.create:
            self.run(
                f"CREATE TABLE {self.name} (id bigint PRIMARY KEY, v text, amount numeric(6,2),"
                " at timestamptz NOT NULL DEFAULT now())"
            )

    @property
    def table(self) -> Table:
        """The polled table."""
        return self.plan.polled[0]

    @property
    def name(self) -> str:
        """Its name in the source and in the lake."""
        return self.table.name

    @property
    def lake(self) -> LakeTables:
        """The lake's tables."""
        return LakeTables(self.spark, self.plan.lake_database)

    def run(self, *statements: str) -> None:
        """Run statements in the source, each in its own transaction."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """Open a transaction that commits at the block's end."""
        with psycopg.connect(self.dsn) as connection:
            connection.execute("SELECT 1")
            yield connection

    def poll(self, dsn: str = "") -> int:
        """Poll once, as the superuser or by another DSN; return the number of rows appended."""
        control: Any = self.control
        poll = TablePoll(self.lake, self.plan, control, self.table, metrics=self.metrics)
        return poll.run(SourceLogin(dsn=dsn or self.dsn, salt="salt"))

    def poll_and_die(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Poll, and die before the poll is remembered."""

        def dies(name: str, content: object) -> None:
            raise OSError("killed")

        with monkeypatch.context() as patched:
            patched.setattr(self.control, "write", dies)
            with pytest.raises(OSError, match="killed"):
                self.poll()

    def rows(self) -> list[tuple[Any, ...]]:
        """The live rows in the lake, without `at`, by key."""
        lake = self.lake
        view = current_view(
            self.table,
            state=lake.qualified(self.name),
            changes=lake.qualified(self.table.changes),
            applied=applied_through(lake, self.table),
            dialect=SPARK,
        )
        return [tuple(r)[:3] for r in self.spark.sql(view).orderBy("id").collect()]

    def source_rows(self) -> list[tuple[Any, ...]]:
        """The same rows of the source."""
        with psycopg.connect(self.dsn) as connection:
            return connection.execute(
                f"SELECT id, v, amount FROM {self.name} ORDER BY id"
            ).fetchall()

    def events(self) -> list[tuple[int, str, str | None]]:
        """Key, operation and `v` of each row of the changelog, in order."""
        log = self.lake.read(self.table.changes).where(F.col("id").isNotNull())
        found = log.orderBy(naming.POSITION, "id").select("id", naming.OP, "v").collect()
        return [tuple(row) for row in found]

    def progress(self) -> PollProgress:
        """How far the source was read."""
        stored = self.control.read(poll_name(self.name))
        assert stored is not None
        return PollProgress.from_json(stored.content)
