"""Incremental readers of a changelog, each with the code that docs/reading.md shows."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pytest
from pyspark.sql import SparkSession

from cdclake.jobs.operations.replay import replay_quarantine
from cdclake.jobs.reader.duck import extension_file
from tests.spark.events import Engine, plan_of
from tests.spark.shown_code import shown_code
from tests.spark.test_changelog_readers import compact
from tests.spark.test_incremental_readers import metadata_of, table_of
from tests.spark.test_repairs import NUMBERS, store_null_instead

pytestmark = pytest.mark.spark
PAGE = "reading.md"
FACTS = ("cdc_position", "cdc_op", "id", "v", "cdc_offset")
NOW_US = time.time_ns() // 1000  # a replay refuses old events


class Reader(ABC):
    """The page's code, from `opening` on, with the names that the reader has to keep."""

    opening: str
    kept: ClassVar[dict[str, Any]]

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine, self.folder = engine, folder
        self.received: list[tuple[Any, ...]] = []
        self.code = shown_code(PAGE, self.opening, f"lake.cdc.{engine.table.changes}")
        self.names: dict[str, Any] = {**self.kept, "write": self.write}

    @abstractmethod
    def write(self, rows: Any, _: int = 0) -> None:
        """Receive rows, as the page's `write` does."""

    def read(self) -> None:
        exec(self.code, self.names)

    def restart(self) -> None:
        """Lose everything but what is kept."""
        self.names = {name: self.names[name] for name in (*self.kept, "write")}

    def close(self) -> None:
        """End the program, which loses its names."""
        self.names.clear()


class SparkReader(Reader):
    """A stream that runs all the time."""

    opening = "table = "
    kept: ClassVar[dict[str, Any]] = {"since": None, "table": None}

    def read(self) -> None:
        if "query" not in self.names:
            self.names |= {"spark": self.engine.spark, "checkpoint": str(self.folder / "kept")}
            super().read()
        self.names["query"].processAllAvailable()

    def write(self, rows: Any, _: int = 0) -> None:
        self.received += map(tuple, rows.select(*FACTS).collect())

    def restart(self) -> None:
        self.close()
        super().restart()
        self.code = "\n".join(self.code.splitlines()[-2:])

    def close(self) -> None:
        self.names["query"].stop()


class PyIcebergReader(Reader):
    """Runs of a program, each from the snapshot that the one before has stored."""

    opening = "newest = "
    kept: ClassVar[dict[str, Any]] = {"last": None}

    def read(self) -> None:
        self.names["table"] = table_of(self.engine)
        super().read()

    def write(self, rows: Any, _: int = 0) -> None:
        self.received += [tuple(row[name] for name in FACTS) for row in rows.to_pylist()]


class DuckDBReader(Reader):
    """Runs of a program, each from the time that the one before has stored."""

    opening = "added = "
    kept: ClassVar[dict[str, Any]] = {"through": "1970-01-01 00:00:00+00"}

    def read(self) -> None:
        self.names["location"] = metadata_of(self.engine).removeprefix("file:")
        with duckdb.connect() as session:
            for extension in ("avro", "iceberg"):
                session.execute(f"LOAD '{extension_file(extension)}'")
            self.names["session"] = session
            super().read()

    def write(self, rows: Any, _: int = 0) -> None:
        columns = self.engine.lake.read(self.engine.table.changes).columns
        self.received += [tuple(row[columns.index(name)] for name in FACTS) for row in rows]


@pytest.mark.parametrize("kind", [SparkReader, PyIcebergReader, DuckDBReader])
def test_each_row_is_read_once(
    spark: SparkSession, kind: type[Reader], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a restart, repeated and replayed events, and a compaction."""
    engine = Engine(spark, plan_of(columns=NUMBERS))
    reader, e = kind(engine, tmp_path), engine.event
    try:
        engine.run(e("c", 10, 10, v="1.00"), e("c", 20, 20, id=2, v="2.00"), apply_now=False)
        reader.read()
        refused, again = e("u", 20, 30, v="1.234", ts=NOW_US), e("u", 30, 40, id=2, v="4.00")
        engine.run(refused, again, apply_now=False)
        assert len(engine.quarantined()) == 1
        engine.run(again, apply_now=False)  # by a restarted connector
        reader.read()
        reader.read()
        store_null_instead(engine)
        assert replay_quarantine(engine.stream(apply_now=False), epoch=1).replayed == 1
        compact(engine, monkeypatch)
        reader.restart()
        reader.read()
        engine.run(e("d", 40, 50), apply_now=False)
        reader.read()
    finally:
        reader.close()
    assert sorted(reader.received) == [tuple(row[name] for name in FACTS) for row in engine.log()]
    assert len(reader.received) == 5
