"""Iceberg tables that the local Firehose appends to, in the lake's catalog and bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform as parse_iceberg_transform
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from cdclake import naming
from cdclake.config.partition import parse_transform
from cdclake.errors import InputError
from cdclake.iceberg.schemas import DERIVED_PROPERTY, TableSchema
from cdclake.local.components.installed import REGION
from cdclake.local.firehose.rows import to_arrow
from cdclake.local.process.credentials import Login

_KINDS: Mapping[str, IcebergType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "double": DoubleType(),
    "date": DateType(),
    "string": StringType(),
    "timestamp": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
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
        """Create a table that only Firehose writes, or add the columns that it lacks.

        Raise InputError if a column has another type, if the partitions differ, or if it is a
        derived table, or the changelog or state of a source table.
        """
        fields = [
            NestedField(number, name, _kind(kind), required=False)
            for number, (name, kind) in enumerate(schema.columns, 1)
        ]
        spec = PartitionSpec(*_partition_fields(schema, fields))
        table = self._catalog.create_table_if_not_exists(
            (self._database, schema.name),
            Schema(*fields),
            location,
            spec,
            properties=dict(schema.properties),
        )
        _refuse_others(table)
        _add_columns(table, fields)
        if [field.name for field in table.spec().fields] != [field.name for field in spec.fields]:
            raise InputError(
                f"the table {schema.name} has other partitions than the pipeline file declares",
                "restore `partition_by`, or declare a table of another name",
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


def _refuse_others(table: Table) -> None:
    """Raise InputError for a table that has other rows than those that Firehose appends."""
    found = ""
    if DERIVED_PROPERTY in table.properties:
        found = "derived table"
    elif any(field.name == naming.POSITION for field in table.schema().fields):
        found = "changelog or state"
    if found:
        raise InputError(
            f"the lake has a {found} {table.name()[-1]}; rows of both would be mixed",
            f"declare a table of another name, or drop the {found}",
        )


def _add_columns(table: Table, fields: Sequence[NestedField]) -> None:
    present = {field.name: field.field_type for field in table.schema().fields}
    with table.update_schema() as change:
        for field in fields:
            if field.name not in present:
                change.add_column(field.name, field.field_type)
            elif present[field.name] != field.field_type:
                raise InputError(
                    f"the column {field.name} of {table.name()[-1]} is {present[field.name]}, but"
                    f" the pipeline file declares {field.field_type}",
                    "restore its type, or declare a table of another name",
                )


def _kind(spark_type: str) -> IcebergType:
    if spark_type.startswith("decimal("):
        precision, scale = spark_type[len("decimal(") : -1].split(",")
        return DecimalType(int(precision), int(scale))
    return _KINDS[spark_type]


def _partition_fields(
    schema: TableSchema, fields: Sequence[NestedField]
) -> Iterator[PartitionField]:
    ids = {field.name: field.field_id for field in fields}
    for number, spelled in enumerate(schema.partition_by, 1000):
        transform = parse_transform(spelled)
        yield PartitionField(
            ids[transform.column],
            number,
            parse_iceberg_transform(transform.kind),
            transform.field_name(transform.column),
        )
