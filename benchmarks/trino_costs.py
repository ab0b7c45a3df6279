"""Bytes and CPU seconds of queries of `_current` in a Trino, over the local S3 and Glue.

The views are those that Athena stores. Bytes are those that Trino reads of data and delete files,
as Athena counts what it bills; metadata files are not in them. CPU seconds are those of the
server's process, planning included.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from trino.dbapi import Connection

from benchmarks.iceberg_catalog import ENDPOINT
from benchmarks.orders import COLUMNS, DATABASE, ORDERS, PLAN
from benchmarks.ours import Ours
from benchmarks.session import open_session
from benchmarks.storage import endpoints_at
from benchmarks.view_queries import (
    TAILS,
    averaged,
    growing_tails,
    of_each_column,
    queries,
    runs_of,
)
from cdclake import naming
from cdclake.iceberg.athena_views import STAMP_AGE_S, athena_views, tail_bound
from cdclake.iceberg.dialect import TRINO
from cdclake.iceberg.views import applied_view
from cdclake.local.trino.lake_catalog import catalog_properties
from cdclake.local.trino.server import CATALOG, running_trino

_LIVE = "live"  # a table of the view's rows in the end


def take(
    *,
    warehouse: str,
    scratch: str,
    base: str,
    batches: Sequence[str],
    rows: int,
    live_rows: Mapping[str, str],
) -> list[Mapping[str, Any]]:
    """Figures of each query while the tail grows; the rows in the end lie in the folder."""
    spark = open_session(Ours.jars, Ours.settings(warehouse), Path(scratch))
    try:
        ours = Ours(spark, warehouse)
        runs: list[Mapping[str, Any]] = []
        state: Mapping[str, Any] = {}
        current = f'"{DATABASE}"."{naming.current_name(ORDERS.name)}"'
        live = applied_view(ORDERS, state=f'"{DATABASE}"."{ORDERS.name}"', dialect=TRINO)
        with _trino(Path(scratch)) as trino:
            for tail in growing_tails(spark, ours, base, batches):
                if tail == next(iter(TAILS)):
                    time.sleep(STAMP_AGE_S)  # younger commits do not bound the tail
                    trino.create_views()
                    trino.costs(current, rows)  # until Java has compiled the most
                    state = trino.costs(f"({live})", rows)
                runs += runs_of("trino", tail, trino.costs(current, rows), state)
            chosen = ", ".join(COLUMNS)
            location = f"WITH (location = '{warehouse}/{_LIVE}')"  # the database has none
            trino.ask(
                f'CREATE TABLE "{DATABASE}"."{_LIVE}" {location} AS SELECT {chosen} FROM {current}'
            )
        ours.lake.read(_LIVE).write.parquet(live_rows["trino"])
        return runs
    finally:
        spark.stop()


class _Trino:
    def __init__(self, connection: Connection, process: psutil.Process) -> None:
        self._connection, self._process = connection, process

    def create_views(self) -> None:
        """Create the views with a literal bound, as the job that applies renews them."""
        cursor = self._connection.cursor()
        cursor.execute(tail_bound(ORDERS, PLAN))
        [[since]] = cursor.fetchall()
        for statement in athena_views(ORDERS, PLAN, since).values():
            self.ask(statement)

    def costs(self, relation: str, rows: int) -> dict[str, Mapping[str, float]]:
        """Return the figures of each shape."""
        return {
            shape: averaged(self._process, partial(self.ask, query(relation)), warm_ups=3, reads=3)
            for shape, query in queries(rows, of_each_column("checksum({})")).items()
        }

    def ask(self, query: str) -> int:
        """Return the bytes that the query has read of files."""
        cursor = self._connection.cursor()
        cursor.execute(query)
        cursor.fetchall()
        return int(cursor.stats["physicalInputBytes"])


@contextmanager
def _trino(scratch: Path) -> Iterator[_Trino]:
    folder = scratch / "trino"
    folder.mkdir()
    catalog = catalog_properties(endpoints_at(os.environ[ENDPOINT]))
    before = {*psutil.Process().children()}
    with running_trino(folder, catalog=catalog, access="all") as server:
        [process] = {*psutil.Process().children()} - before
        # As Athena's own session, not with the settings of a machine of one node.
        connection = Connection(
            host="127.0.0.1", port=server.port, user=server.user, catalog=CATALOG, timezone="UTC"
        )
        yield _Trino(connection, process)
