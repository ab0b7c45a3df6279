"""The Iceberg tables that the local Firehose appends to, in the lake's catalog and bucket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from cdclake import naming
from local.components.installed import LOCAL_KEYS, REGION
from local.firehose.rows import to_arrow


class LogTables:
    """Appends to the logs of one database, by pyiceberg: each append is a commit."""

    def __init__(self, glue: str, s3: str, database: str) -> None:
        key, secret = LOCAL_KEYS["AWS_ACCESS_KEY_ID"], LOCAL_KEYS["AWS_SECRET_ACCESS_KEY"]
        self._database = database
        self._catalog = GlueCatalog(
            naming.CATALOG,
            **{
                "glue.endpoint": glue,
                "s3.endpoint": s3,
                "client.region": REGION,
                "client.access-key-id": key,
                "client.secret-access-key": secret,
                "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
            },
        )

    def schema(self, table: str) -> Schema:
        """The table's columns as they are now."""
        return self._load(table).schema()

    def append(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows that fit, in one commit; raises whatever keeps it from being made."""
        loaded = self._load(table)
        loaded.append(to_arrow(rows, loaded.schema()))

    def _load(self, table: str) -> Table:
        return self._catalog.load_table((self._database, table))
