"""Derived table in plain files: each refresh writes a new folder, then moves the catalog to it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection
from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from cdclake import naming
from cdclake.derived_table import DerivedTable
from cdclake.errors import TableError
from cdclake.fail_points import reach
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.derived.derived_rows import check_keys
from cdclake.jobs.derived.external_table import ExternalTable
from cdclake.jobs.derived.partition_files import LINE, WRITTEN_DDL, FileWriter
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.iceberg.persistence import persisted

# The catalog separates values by commas; readers split folders at `/` and `=`, decode `%`, and take
# two texts for NULL; DuckDB also loses what follows `?` or a backslash.
_NO_FOLDER = frozenset(",/=?%\\")
_NULLS = frozenset({"null", "__hive_default_partition__"})
# Without zone and with microseconds, as Athena's JSON reader takes them.
_TIME = "yyyy-MM-dd HH:mm:ss.SSSSSS"
_JSON_OPTIONS = {"timestampFormat": _TIME, "timestampNTZFormat": _TIME, "ignoreNullFields": "false"}


def write_files(
    lake: LakeTables, table: DerivedTable, leases: Leases, *, keeps_before: bool = True
) -> int:
    """Write the query's whole result into a new folder and publish it; return its rows.

    Readers go on with the old folder until the catalog names the new one, in one request. The
    folder that was published before stays until the next refresh, for queries that still read it,
    unless `keeps_before` is False. Raises TableError, and publishes nothing, if the table's lease
    has been taken over.
    """
    storage = ObjectStorage.of(dict(lake.load(_any_source(lake, table)).io().properties()))
    home = f"{lake.spark.conf.get(f'spark.sql.catalog.{naming.CATALOG}.warehouse')}"
    base = f"{home}/{lake.database}.db/{table.name}"
    earlier = storage.list(base)  # before the work: a run that took over the lease adds later files
    folder = f"{base}/{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}"
    with persisted(lake.spark.sql(table.sql)) as rows:
        check_keys(table, rows)
        columns = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
        writer = FileWriter(folder, table.format, table.partition_by, storage)
        written = _arranged(table, rows).mapInArrow(writer, WRITTEN_DDL).collect()
    kept = {row["path"] for row in written}
    for path in storage.list(folder):
        if path not in kept:  # of a task that was repeated, with other rows
            storage.delete(path)
    partitions = folder_values(table, {tuple(json.loads(row["partition"])) for row in written})
    reach("before_derived_files")
    catalog = ExternalTable(lake.database, table.name)
    leases.check(table.name)
    before = catalog.publish(table, folder, columns, partitions)
    for path in earlier:
        if not (keeps_before and path.startswith(f"{before}/")):
            storage.delete(path)
    return sum(row["rows"] for row in written)


def _any_source(lake: LakeTables, table: DerivedTable) -> str:
    return next(name for name in table.sources if lake.exists(name))


def _arranged(table: DerivedTable, rows: DataFrame) -> DataFrame:
    """Return the rows as the files hold them, those of a partition together.

    The key sorts them, so that a task that is repeated cuts them into the same files.
    """
    texts = [F.col(name).cast("string") for name in table.partition_by]
    if texts:
        rows = rows.repartition(*texts)
    rows = rows.sortWithinPartitions(*texts, *table.key)
    by = [text.alias(name) for text, name in zip(texts, table.partition_by, strict=True)]
    others = [name for name in rows.columns if name not in table.partition_by]
    if table.format == "json":
        kinds = {field.name: field.dataType for field in rows.schema.fields}
        exact = [F.col(name).cast(_exact(kinds[name])).alias(name) for name in others]
        stored = [F.to_json(F.struct(*exact), _JSON_OPTIONS).alias(LINE)]
    else:
        stored = [F.col(name) for name in others]
    return rows.select(*by, *stored)


def _exact(kind: DataType) -> DataType:
    """Return the type with text for decimals, also in lists, maps and structures.

    Most JSON readers take a number for a double, and round it.
    """
    match kind:
        case DecimalType():
            return StringType()
        case ArrayType():
            return ArrayType(_exact(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(_exact(kind.keyType), _exact(kind.valueType), kind.valueContainsNull)
        case StructType():
            return StructType(
                [StructField(f.name, _exact(f.dataType), f.nullable) for f in kind.fields]
            )
    return kind


def folder_values(
    table: DerivedTable, partitions: Collection[tuple[str | None, ...]]
) -> list[tuple[str, ...]]:
    """Sort the partitions' values; raise TableError for one that the catalog cannot list.

    The reason is stored and logged, so it has no value of a row.
    """
    for values in partitions:
        for name, value in zip(table.partition_by, values, strict=True):
            if value is None or not _names_folder(value):
                raise TableError(
                    table.name,
                    f"a value of {name} cannot name a folder: it is empty, reads as NULL,"
                    " has blanks around it, a control character, or one of , / = ? % \\",
                    f"find it by SELECT DISTINCT {name} over the query, and have the query return"
                    f" another value, such as coalesce({name}, 'none')",
                )
    return sorted(tuple(str(value) for value in values) for values in partitions)


def _names_folder(value: str) -> bool:
    if not value or value != value.strip() or value.lower() in _NULLS:
        return False
    return not _NO_FOLDER & {*value} and min(value) >= " "
