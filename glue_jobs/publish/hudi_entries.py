"""Glue's entries of a Hudi copy, as Hudi's own catalog tool writes them.

That tool is in no jar that the job has. A merge-on-read copy has two entries over the same files:
`_ro` reads the compacted files only, `_rt` merges the rows that were written since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import boto3
from pyspark.sql.types import StringType, StructField, StructType

from cdclake.errors import TableError
from cdclake.hudi_copy import HudiCopy
from cdclake.jobs.iceberg.catalog_entries import table_entry

_HADOOP = "org.apache.hudi.hadoop"
_HIVE = "org.apache.hadoop.hive.ql.io.parquet"
_PARQUET, _REALTIME = "HoodieParquetInputFormat", "realtime.HoodieParquetRealtimeInputFormat"
_PROVIDER = "spark.sql.sources.provider"
_SCHEMA = "spark.sql.sources.schema"
_MAX_PART_CHARACTERS = 4000  # of Spark's schema in one parameter, as Hudi's tool splits it
_MAX_PARTITIONS_PER_REQUEST = 100  # Glue's BatchCreatePartition and BatchUpdatePartition
_MAX_DELETED_PER_REQUEST = 25  # Glue's BatchDeletePartition
_HUDI_COLUMNS = tuple(
    f"_hoodie_{name}"
    for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
)


class HudiEntries:
    """Entries of one copy in Glue's catalog: one, or two for a merge-on-read copy."""

    def __init__(self, database: str, copy: HudiCopy) -> None:
        self._database, self._copy = database, copy
        self._glue = boto3.client("glue")

    def put(self, folder: str, schema: StructType, partitions: Sequence[str]) -> None:
        """Have the catalog name the folder, its columns and its folders of partitions, no others.

        Raises TableError if the catalog has another table of this name.
        """
        for name in self._copy.entries:
            wanted = table_input(self._copy, name, folder, schema)
            known = table_entry(self._glue, self._database, name)
            if known is None:
                self._glue.create_table(DatabaseName=self._database, TableInput=wanted)
            elif known.get("Parameters", {}).get(_PROVIDER) != "hudi":
                raise TableError(
                    self._copy.name,
                    f"the catalog has another table {name!r}, which is not a Hudi table",
                    "give the copy another `name:`, or drop the other table",
                )
            elif any(known.get(field) != value for field, value in wanted.items()):
                self._glue.update_table(
                    DatabaseName=self._database, TableInput=wanted, SkipArchive=True
                )
            self._put_partitions(name, wanted["StorageDescriptor"], partitions)

    def _put_partitions(
        self, name: str, storage: dict[str, Any], partitions: Sequence[str]
    ) -> None:
        """Add the partitions that the entry lacks, delete others, and have all the entry's columns.

        Athena refuses a partition whose types differ from its table's.
        Source: Athena's user guide, "Updates in tables with partitions", and HUDI-6453.
        """
        if self._copy.partition_by is None:
            return
        place = {"DatabaseName": self._database, "TableName": name}
        pages = self._glue.get_paginator("get_partitions").paginate(**place)
        known = [each for page in pages for each in page["Partitions"]]
        names = {tuple(each["Values"]) for each in known}
        folders = {(partition_value(folder),): folder for folder in partitions}
        lacking = [
            _partition(values, storage, f"{storage['Location']}/{folder}")
            for values, folder in folders.items()
            if values not in names
        ]
        gone = [{"Values": [*values]} for values in names if values not in folders]
        changed = [
            {
                "PartitionValueList": each["Values"],
                "PartitionInput": _partition(
                    each["Values"], storage, each["StorageDescriptor"]["Location"]
                ),
            }
            for each in known
            if tuple(each["Values"]) in folders
            and _types(each["StorageDescriptor"]) != _types(storage)
        ]
        for some in _requests(lacking):
            self._check(self._glue.batch_create_partition(**place, PartitionInputList=some))
        for some in _requests(changed):
            self._check(self._glue.batch_update_partition(**place, Entries=some))
        for some in _requests(gone, _MAX_DELETED_PER_REQUEST):
            self._check(self._glue.batch_delete_partition(**place, PartitionsToDelete=some))

    def _check(self, answer: dict[str, Any]) -> None:
        for refused in answer.get("Errors", ()):
            raise TableError(
                self._copy.name,
                f"Glue refused a partition of the copy: {refused['ErrorDetail']}",
                "run the job again",
            )


def _partition(values: Iterable[str], storage: dict[str, Any], location: str) -> dict[str, Any]:
    return {"Values": [*values], "StorageDescriptor": storage | {"Location": location}}


def _requests(
    entries: Sequence[dict[str, Any]], size: int = _MAX_PARTITIONS_PER_REQUEST
) -> Iterator[Sequence[dict[str, Any]]]:
    for start in range(0, len(entries), size):
        yield entries[start : start + size]


def _types(storage: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["Name"], each["Type"]) for each in storage["Columns"]]


def partition_value(folder: str) -> str:
    """Return the value that names a folder.

    >>> partition_value("country=Côte d%27Ivoire")
    "Côte d'Ivoire"
    """
    return unquote(folder.partition("=")[2])


def table_input(copy: HudiCopy, name: str, folder: str, schema: StructType) -> dict[str, Any]:
    """Return Glue's `TableInput` of one entry."""
    fields = list(_stored_fields(copy, schema))
    columns = [{"Name": f.name, "Type": f.dataType.simpleString()} for f in fields]
    keys = [column for column in columns if column["Name"] == copy.partition_by]
    is_realtime, is_optimized = name.endswith("_rt"), name.endswith("_ro")
    is_merged = copy.type == "mor"
    reader = _REALTIME if is_merged and is_realtime else _PARQUET
    return {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"EXTERNAL": "TRUE", _PROVIDER: "hudi"} | dict(_spark_schema(copy, fields)),
        "PartitionKeys": keys,
        "StorageDescriptor": {
            "Columns": [column for column in columns if column not in keys],
            "Location": folder,
            "InputFormat": f"{_HADOOP}.{reader}",
            "OutputFormat": f"{_HIVE}.MapredParquetOutputFormat",
            "SerdeInfo": {
                "SerializationLibrary": f"{_HIVE}.serde.ParquetHiveSerDe",
                "Parameters": {
                    "path": folder,
                    "hoodie.query.as.ro.table": str(is_merged and is_optimized).lower(),
                },
            },
        },
    }


def _stored_fields(copy: HudiCopy, schema: StructType) -> Iterator[StructField]:
    """Yield the columns in the order of Spark: Hudi's own first, the partition's last."""
    yield from (StructField(name, StringType()) for name in _HUDI_COLUMNS)
    yield from (field for field in schema.fields if field.name != copy.partition_by)
    yield from (field for field in schema.fields if field.name == copy.partition_by)


def _spark_schema(copy: HudiCopy, fields: Sequence[StructField]) -> Iterator[tuple[str, str]]:
    """Yield the parameters that tell Spark the columns and their exact types."""
    text = StructType(list(fields)).json()
    parts = range(0, len(text), _MAX_PART_CHARACTERS)
    yield f"{_SCHEMA}.numParts", str(len(parts))
    for number, start in enumerate(parts):
        yield f"{_SCHEMA}.part.{number}", text[start : start + _MAX_PART_CHARACTERS]
    if copy.partition_by is not None:
        yield f"{_SCHEMA}.numPartCols", "1"
        yield f"{_SCHEMA}.partCol.0", copy.partition_by
