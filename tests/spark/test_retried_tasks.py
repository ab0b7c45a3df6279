"""Tasks whose Python worker dies are tried again, as Spark does on a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlparse

import psutil
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdclake import naming
from tests.spark.events import RECORD, Engine
from tests.spark.large_rows import large_records

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 300  # of 1 MB: several files of 64 MB per task


def data_files(engine: Engine, table: str) -> set[Path]:
    """Data files in the table's folder, whether or not it has them."""
    folder = Path(urlparse(engine.lake.load(table).location()).path)
    return set(folder.rglob("*.parquet"))


def files_of_table(engine: Engine, table: str) -> set[Path]:
    rows = engine.spark.table(f"{naming.CATALOG}.cdc.{table}.all_files").collect()
    return {Path(urlparse(row["file_path"]).path) for row in rows}


@contextmanager
def workers_killed_at_the_first_file(engine: Engine, table: str) -> Iterator[list[set[Path]]]:
    """Kill Spark's Python workers once, when a task has written a file of the table.

    The list has the files of that time.
    """
    before, found, ended = data_files(engine, table), list[set[Path]](), Event()

    def watch() -> None:
        while not ended.is_set():
            if written := data_files(engine, table) - before:
                for worker in python_workers():
                    with suppress(psutil.NoSuchProcess):
                        worker.kill()
                found.append(written)
                return
            time.sleep(0.002)

    watching = Thread(target=watch)
    watching.start()
    try:
        yield found
    finally:
        ended.set()
        watching.join()


def python_workers() -> list[psutil.Process]:
    """Return the processes that Spark's Python daemon has forked."""
    running = psutil.Process().children(recursive=True)
    daemons = {each.pid for each in running if is_daemon(each)}
    return [each for each in running if is_daemon(each) and each.ppid() in daemons]


def is_daemon(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return "pyspark.daemon" in process.cmdline()
    return False


def orphans(engine: Engine, table: str) -> set[Path]:
    return data_files(engine, table) - files_of_table(engine, table)


def test_tasks_that_died_leave_only_orphans(spark: SparkSession) -> None:
    engine = Engine(spark)
    refused = engine.record(ROWS, (b'{"id":1}', b'{"after": "no event"}'))
    records = large_records(engine, ROWS).union(spark.createDataFrame([refused], RECORD))
    changelog, state = engine.table.changes, engine.table.name
    with workers_killed_at_the_first_file(engine, changelog) as killed:
        engine.stream().run(records, {0: (0, ROWS + 1)}, epoch=1)
    assert orphans(engine, changelog) & killed[0], "no file of the task that died"
    assert len(engine.quarantined()) == 1
    with workers_killed_at_the_first_file(engine, state) as killed:
        engine.apply()
    assert orphans(engine, state) & killed[0], "no file of the task that died"
    for table in (changelog, state):
        counts = engine.lake.read(table).select(F.count("*"), F.count_distinct("id"))
        assert counts.first() == (ROWS, ROWS)
