"""An Iceberg table with fixed columns, created by CloudFormation.

The jobs create and evolve the tables of a database's changes
(docs/decisions/0013-tables-made-by-the-jobs.md). This table has no job.
"""

from __future__ import annotations

from aws_cdk import Aws, RemovalPolicy, aws_glue
from constructs import Construct

from cdclake.config.partition import parse_transform
from cdclake.iceberg.schemas import TableSchema

_Table = aws_glue.CfnTable
# Iceberg's names of Spark's types, where they differ; all primitive, since CloudFormation takes a
# string as type.
_TYPES = {"bigint": "long", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
_FIRST_PARTITION = 1000  # Iceberg's first id of partition fields


class IcebergTableResource(Construct):
    """Table created by Glue's Iceberg support, without a `TableInput`.

    With a `TableInput`, the service rejects the resource, or drops its Iceberg properties at the
    next change.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        schema: TableSchema,
        database: str,
        location: str,
        kept: RemovalPolicy,
    ) -> None:
        super().__init__(scope, construct_id)
        made = _Table.IcebergTableInputProperty(
            location=location,
            schema=_columns(schema),
            partition_spec=_partitions(schema),
            properties=dict(schema.properties),
        )
        table = _Table(
            self,
            "Table",
            catalog_id=Aws.ACCOUNT_ID,
            database_name=database,
            name=schema.name,
            open_table_format_input=_Table.OpenTableFormatInputProperty(
                iceberg_input=_Table.IcebergInputProperty(
                    metadata_operation="CREATE",
                    version=schema.properties["format-version"],
                    iceberg_table_input=made,
                )
            ),
        )
        table.apply_removal_policy(kept)


def _columns(schema: TableSchema) -> aws_glue.CfnTable.IcebergSchemaProperty:
    return _Table.IcebergSchemaProperty(
        type="struct",
        schema_id=0,
        fields=[
            _Table.IcebergStructFieldProperty(
                id=number, name=name, type=_TYPES.get(kind, kind), required=False
            )
            for number, (name, kind) in enumerate(schema.columns, start=1)
        ],
    )


def _partitions(schema: TableSchema) -> aws_glue.CfnTable.IcebergPartitionSpecProperty:
    ids = {name: number for number, (name, _) in enumerate(schema.columns, start=1)}
    transforms = [parse_transform(spelled) for spelled in schema.partition_by]
    return _Table.IcebergPartitionSpecProperty(
        spec_id=0,
        fields=[
            _Table.IcebergPartitionFieldProperty(
                source_id=ids[transform.column],
                field_id=_FIRST_PARTITION + number,
                name=transform.field_name(transform.column),
                transform=transform.kind,
            )
            for number, transform in enumerate(transforms)
        ],
    )
