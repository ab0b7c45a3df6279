"""A Trino over a test's lake, with the views that Athena gets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdclake.iceberg.athena_views import athena_views
from cdclake.local.process.home import Home
from cdclake.local.trino.lake_catalog import trino_of
from cdclake.local.trino.server import ICEBERG_JARS, Trino
from cdclake.places import JARS
from cdclake.plan import Plan
from tests.local.running import RunningLake


@contextmanager
def trino_at(lake: RunningLake, folder: Path) -> Iterator[Trino]:
    """Yield a server that reads the lake, and may create views in it."""
    folder.mkdir()
    with trino_of(Home(lake.home), lake.endpoints, folder, "all") as server:
        yield server


def need_iceberg_jars() -> None:
    """Skip the tests if the plugin is not there."""
    if not (JARS / ICEBERG_JARS).is_dir():
        pytest.skip("no jars/trino-iceberg: run `make trino-iceberg-jars`")


def create_views(engine: Trino, plan: Plan, *tables: str) -> None:
    """Create the views of these tables as `cdclake views` prints them; of all without a name."""
    for table in plan.all_tables:
        if not tables or table.name in tables:
            for statement in athena_views(table, plan).values():
                engine.rows(statement)
