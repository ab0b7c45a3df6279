"""Trino's catalog of a local lake: its Glue, and its S3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdclake.local.components.installed import REGION
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.home import Home
from cdclake.local.trino.server import Access, Trino, running_trino

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
def trino_of(
    home: Home, endpoints: Endpoints, folder: Path, access: Access = "read-only"
) -> Iterator[Trino]:
    """Start a server that reads the lake, with its files in an empty private folder; yield it."""
    with running_trino(folder, home, catalog_properties(endpoints), access) as server:
        yield server


def catalog_properties(endpoints: Endpoints) -> str:
    """Return the properties of a catalog of the lake's tables."""
    return _CATALOG.format(at=endpoints, region=REGION)
