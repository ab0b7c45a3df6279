"""Iceberg tables that the local Firehose appends to, in the lake's catalog and bucket."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform
from pyiceberg.types import (
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from cdclake import naming
from cdclake.iceberg.schemas import TableSchema
from cdclake.local.components.installed import REGION
from cdclake.local.firehose.rows import to_arrow
from cdclake.local.process.credentials import Login

_DAYS = re.compile(r"days\((\w+)\)")
_KINDS: Mapping[str, IcebergType] = {
    "int": IntegerType(),
    "bigint": LongType(),
    "string": StringType(),
    "timestamp": TimestamptzType(),
}


class LogTables:
    """Tables of one database, written with pyiceberg: each append is a commit."""

    def __init__(self, glue: str, s3: str, keys: Login, database: str) -> None:
        self._database = database
        self._catalog = GlueCatalog(
            naming.CATALOG,
            **{
                "glue.endpoint": glue,
                "s3.endpoint": s3,
                "client.region": REGION,
                "client.access-key-id": keys.user,
                "client.secret-access-key": keys.password,
                "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
            },
        )

    def create(self, schema: TableSchema, location: str) -> None:
        """Create a table of web logs, which have few kinds of columns, unless it exists."""
        fields = [
            NestedField(number, name, _KINDS[kind], required=False)
            for number, (name, kind) in enumerate(schema.columns, 1)
        ]
        self._catalog.create_table_if_not_exists(
            (self._database, schema.name),
            Schema(*fields),
            location,
            PartitionSpec(*_by_day(schema, fields)),
            properties=dict(schema.properties),
        )

    def schema(self, table: str) -> Schema:
        """Return the table's current columns."""
        return self._load(table).schema()

    def append(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows that fit, in one commit; raise the catalog's or the storage's error."""
        loaded = self._load(table)
        loaded.append(to_arrow(rows, loaded.schema()))

    def _load(self, table: str) -> Table:
        return self._catalog.load_table((self._database, table))


def _by_day(schema: TableSchema, fields: Sequence[NestedField]) -> Iterator[PartitionField]:
    for number, spelled in enumerate(schema.partition_by, 1000):
        found = _DAYS.fullmatch(spelled)
        assert found is not None  # web logs use no other transform
        [source] = [field.field_id for field in fields if field.name == found[1]]
        yield PartitionField(source, number, DayTransform(), f"{found[1]}_day")
