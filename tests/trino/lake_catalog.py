"""The catalog by which Trino reads a local lake: its Glue, and its S3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdclake.iceberg.athena_views import athena_views
from cdclake.local.components.installed import REGION
from cdclake.local.lake.stack import Endpoints
from cdclake.plan import Plan
from tests.trino.server import ICEBERG_JARS, Trino, running_trino

_CATALOG = """\
connector.name=iceberg
iceberg.catalog.type=glue
hive.metastore.glue.region={region}
hive.metastore.glue.endpoint-url={at.glue}
hive.metastore.glue.aws-access-key={at.keys.user}
hive.metastore.glue.aws-secret-key={at.keys.password}
hive.s3.endpoint={at.s3}
hive.s3.path-style-access=true
hive.s3.ssl.enabled=false
hive.s3.aws-access-key={at.keys.user}
hive.s3.aws-secret-key={at.keys.password}
"""


@contextmanager
def trino_at(endpoints: Endpoints, folder: Path) -> Iterator[Trino]:
    """Yield a server that reads the lake of these endpoints."""
    folder.mkdir()
    catalog = _CATALOG.format(at=endpoints, region=REGION)
    with running_trino(folder, catalog) as server:
        yield server


def need_iceberg_jars() -> None:
    """Skip the tests if the plugin is not there."""
    if not ICEBERG_JARS.is_dir():
        pytest.skip("no jars/trino-iceberg: run `make trino-iceberg-jars`")


def create_views(engine: Trino, plan: Plan, *tables: str) -> None:
    """Create the views of these tables as `cdclake views` prints them; of all without a name."""
    for table in plan.all_tables:
        if not tables or table.name in tables:
            for statement in athena_views(table, plan).values():
                engine.rows(statement)
