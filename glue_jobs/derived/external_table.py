"""Glue's entry of a derived table in plain files.

The entry names the folder of the files and the values of their partitions (partition projection),
so that one request moves readers from one folder to the next. Source: Athena user guide, "Set up
partition projection"; `enum` takes a list of values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import boto3

from cdclake.derived_table import DerivedTable
from cdclake.errors import TableError
from cdclake.jobs.iceberg.catalog_entries import table_entry

_FORMATS = ("parquet", "json")
_PARQUET = {
    "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "SerdeInfo": {
        "SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
    },
}
_JSON = {
    "InputFormat": "org.apache.hadoop.mapred.TextInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    "SerdeInfo": {"SerializationLibrary": "org.openx.data.jsonserde.JsonSerDe"},
}


class ExternalTable:
    """Entry of one table in Glue's catalog."""

    def __init__(self, database: str, name: str) -> None:
        self._database, self._name = database, name
        self._glue = boto3.client("glue")

    def publish(
        self,
        table: DerivedTable,
        folder: str,
        columns: Mapping[str, str],
        partitions: Sequence[Sequence[str]],
    ) -> str | None:
        """Let readers read the folder, with these columns and types, from now on.

        Returns the folder that they read until now; None the first time. Raises TableError if the
        catalog has another table of this name.
        """
        entry = table_input(table, folder, columns, partitions)
        known = self.check(table)
        if known is None:
            self._glue.create_table(DatabaseName=self._database, TableInput=entry)
            return None
        # An archived version would keep the values of partitions, also those of erased rows.
        self._glue.update_table(DatabaseName=self._database, TableInput=entry, SkipArchive=True)
        return str(known["StorageDescriptor"]["Location"])

    def check(self, table: DerivedTable) -> dict[str, Any] | None:
        """Return the entry; raise TableError if it is not one of the derived table's format.

        Call it for an Iceberg table only where the catalog has none of the name: any entry is then
        another table.
        """
        known = table_entry(self._glue, self._database, self._name)
        stored = known.get("Parameters", {}).get("classification") if known else None
        if known is not None and (stored not in _FORMATS or table.format not in _FORMATS):
            raise TableError(
                self._name,
                "the catalog has another table of this name, "
                + (f"of files in {stored}" if stored in _FORMATS else "which may be in Iceberg"),
                "rename the derived table; or drop the other table, and delete its folder,"
                f" {known.get('StorageDescriptor', {}).get('Location')}",
            )
        return known


def table_input(
    table: DerivedTable,
    folder: str,
    columns: Mapping[str, str],
    partitions: Sequence[Sequence[str]],
) -> dict[str, Any]:
    """Return Glue's `TableInput`; partition columns are strings, as folders are named by text."""
    stored = {name: kind for name, kind in columns.items() if name not in table.partition_by}
    template = "".join(f"{name}=${{{name}}}/" for name in table.partition_by)
    parameters = {"classification": table.format, "EXTERNAL": "TRUE"}
    if table.partition_by:
        parameters["projection.enabled"] = "true"
        parameters["storage.location.template"] = f"{folder}/{template}"
    for number, name in enumerate(table.partition_by):
        values = sorted({values[number] for values in partitions})
        parameters[f"projection.{name}.type"] = "enum"
        parameters[f"projection.{name}.values"] = ",".join(values)
    return {
        "Name": table.name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": parameters,
        "PartitionKeys": [{"Name": name, "Type": "string"} for name in table.partition_by],
        "StorageDescriptor": {
            "Columns": [{"Name": n, "Type": hive_type(kind)} for n, kind in stored.items()],
            "Location": folder,
            **(_PARQUET if table.format == "parquet" else _JSON),
        },
    }


def hive_type(spark: str) -> str:
    """Return Hive's name of a Spark type.

    >>> hive_type("timestamp_ntz"), hive_type("decimal(12,2)")
    ('timestamp', 'decimal(12,2)')
    """
    return spark.replace("timestamp_ntz", "timestamp")
