"""Files that tasks write, against those that Iceberg's own writer makes of the same rows."""

import json
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from cdclake.errors import TableError
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.partition_values import in_json
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.jvm.java import each, java_with
from cdclake.jobs.stream.row_files import read_rows, write_rows

pytestmark = pytest.mark.spark

TYPES = (
    "b boolean, i int, l bigint, f float, d double, day date, at timestamp, local timestamp_ntz,"
    " n decimal(10,2), big decimal(38,10), s string, raw binary, list array<string>,"
    " cdc_partition int, cdc_ingested_at timestamp"
)
ROWS = """
    SELECT * FROM VALUES
      (true, 1, 10L, 1.5F, 2.5D, DATE'2026-01-31', TIMESTAMP'2026-01-31 10:00:00.123456',
       TIMESTAMP_NTZ'0044-03-15 00:00:00', 12.30BD,
       1234567890123456789012345678.1012345678BD, 'a', X'00', array('x', NULL), 3,
       TIMESTAMP'2026-11-25 01:00:00'),
      (false, -5, -9223372036854775808L, -1.0F, CAST('NaN' AS double), DATE'-0044-03-15',
       TIMESTAMP'1960-01-01 00:00:00', TIMESTAMP_NTZ'2026-01-31 10:00:00', -99999999.99BD,
       -1234567890123456789012345678.1012345678BD, 'a text of more than sixteen characters',
       X'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF01', array(), 3, TIMESTAMP'2026-11-25 01:00:00'),
      (NULL, NULL, NULL, CAST('NaN' AS float), NULL, NULL, NULL, NULL, NULL, NULL,
       'sixteen chars \U0010ffff\U0010ffff\U0010ffff', NULL, NULL, 3,
       TIMESTAMP'2026-11-25 01:00:00')
"""


class Pair:
    """Two equal tables: one that Spark writes, and one that tasks write."""

    def __init__(self, spark: SparkSession, **properties: str) -> None:
        self.spark = spark
        spark.sql("CREATE DATABASE IF NOT EXISTS lake.cdc")
        self.lake = LakeTables(spark, "cdc")
        self.names = [f"{kind}_{uuid.uuid4().hex[:8]}" for kind in ("spark", "task")]
        settings = {"format-version": "2", **properties}
        listed = ", ".join(f"'{key}'='{value}'" for key, value in settings.items())
        for name in self.names:
            spark.sql(
                f"CREATE TABLE lake.cdc.{name} ({TYPES}) USING iceberg PARTITIONED BY"
                f" (days(cdc_ingested_at), cdc_partition) TBLPROPERTIES ({listed})"
            )
        self.handle = TableHandle(self.lake, self.names[1])

    def rows(self) -> DataFrame:
        values = self.spark.sql(ROWS).toDF(*self.lake.read(self.names[0]).columns)
        types = {f.name: f.dataType for f in self.lake.read(self.names[0]).schema.fields}
        return values.select(*(values[name].cast(kind) for name, kind in types.items()))

    def write_both(self) -> list[str]:
        rows = self.rows().repartition(1)
        rows.writeTo(f"lake.cdc.{self.names[0]}").append()
        files = write_rows(rows, self.handle.target())
        self.handle.append(files, read_from=None, unless_added=self.handle.expressions.alwaysTrue())
        return files

    def described(self, name: str) -> dict[str, Any]:
        """The only file of a table, as Iceberg's parser writes it."""
        java = java_with(self.spark, "org.apache.iceberg.ContentFileParser")
        table = self.lake.load(name)
        [task] = each(table.newScan().includeColumnStats().planFiles())
        found: dict[str, Any] = json.loads(java.ContentFileParser.toJson(task.file(), table.spec()))
        return found


def by_field(metrics: dict[str, list[Any]]) -> dict[int, Any]:
    return dict(zip(metrics["keys"], metrics["values"], strict=True))


def test_files_have_the_rows_and_metrics_of_icebergs_own_writer(spark: SparkSession) -> None:
    pair = Pair(spark, **{"write.metadata.metrics.column.s": "full"})
    pair.write_both()
    ours, theirs = (pair.described(name) for name in reversed(pair.names))
    for key in ("content", "file-format", "partition", "record-count", "spec-id"):
        assert ours[key] == theirs[key], key
    names = (
        "value-counts",
        "null-value-counts",
        "nan-value-counts",
        "lower-bounds",
        "upper-bounds",
    )
    fields = {f.fieldId(): f.name() for f in each(pair.lake.load(pair.names[1]).schema().columns())}
    for key in names:
        mine, other = by_field(ours[key]), by_field(theirs[key])
        assert {fields[n]: v for n, v in mine.items() if n in fields} == {
            fields[n]: v for n, v in other.items() if n in fields
        }, key
    assert ours["file-size-in-bytes"] > 0
    for name in pair.names:
        assert spark.table(f"lake.cdc.{name}").count() == 3
    assert spark.sql(
        f"SELECT * FROM lake.cdc.{pair.names[0]} EXCEPT ALL SELECT * FROM lake.cdc.{pair.names[1]}"
    ).isEmpty()


def test_the_description_is_in_the_form_of_icebergs_parser(spark: SparkSession) -> None:
    """It is not a promised form: what Iceberg writes has the same keys, and reads back the same."""
    pair = Pair(spark)
    [file] = pair.write_both()
    theirs = pair.described(pair.names[0])
    assert json.loads(file).keys() <= theirs.keys()
    stored = pair.described(pair.names[1])
    for key, value in json.loads(file).items():
        is_empty = isinstance(value, dict) and not value.get("keys")
        if key != "partition" and not is_empty:
            assert str(stored[key]).lower() == str(value).lower(), key


def test_pruning_by_metrics_finds_each_row(spark: SparkSession) -> None:
    pair = Pair(spark)
    pair.write_both()
    for condition in (
        "i = -5", "day < DATE'0001-01-01'", "n = 12.30", "s > 'sixteen chars'", "isnan(f)",
        "raw >= X'FFFF'", "at = TIMESTAMP'2026-01-31 10:00:00.123456'", "big < 0", "i IS NULL",
        "big = 1234567890123456789012345678.1012345678",
        "big = -1234567890123456789012345678.1012345678",
        "local = TIMESTAMP_NTZ'0044-03-15 00:00:00'", "l < -9000000000000000000", "NOT b",
    ):  # fmt: skip
        counts = [spark.table(f"lake.cdc.{name}").where(condition).count() for name in pair.names]
        assert counts == [1, 1], condition


def test_rows_of_files_that_no_commit_has_can_be_read(spark: SparkSession) -> None:
    pair = Pair(spark)
    rows = pair.rows()
    files = write_rows(rows, pair.handle.target())
    again = read_rows(files, pair.handle.target(), pair.lake.read(pair.names[1]).limit(0))
    assert again.exceptAll(rows).isEmpty() and rows.exceptAll(again).isEmpty()
    assert pair.lake.read(pair.names[1]).isEmpty()


def test_a_column_that_the_rows_lack_is_null(spark: SparkSession) -> None:
    pair = Pair(spark)
    files = write_rows(pair.rows().drop("s", "list"), pair.handle.target())
    pair.handle.append(files, read_from=None, unless_added=pair.handle.expressions.alwaysTrue())
    stored = spark.table(f"lake.cdc.{pair.names[1]}")
    assert stored.where("s IS NULL AND list IS NULL").count() == 3


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("write.format.default", "orc"),
        ("write.parquet.compression-codec", "gzip"),
        ("write.object-storage.enabled", "true"),
        ("write.metadata.metrics.column.s", "counts"),
        ("write.parquet.bloom-filter-enabled.column.s", "true"),
    ],
)
def test_a_property_that_files_would_not_honour_is_refused(
    spark: SparkSession, key: str, value: str
) -> None:
    pair = Pair(spark, **{key: value})
    with pytest.raises(TableError, match=f"{key}={value}"):
        pair.handle.target()


@pytest.mark.parametrize("year", [-4713, -1, 0, 1, 9999, 10_000, 20_222, 294_000])
def test_iceberg_reads_partition_values_of_every_year(spark: SparkSession, year: int) -> None:
    java = java_with(spark, "org.apache.iceberg.util.DateTimeUtil").DateTimeUtil
    days = (np.datetime64(year - 1970, "Y")).astype("datetime64[D]").astype(int).item() + 40
    micros = days * 86_400_000_000 + 5
    day = pa.scalar(days, pa.int32()).cast(pa.date32())
    assert java.isoDateToDays(in_json(day)) == days
    local, zoned = (pa.scalar(micros).cast(pa.timestamp("us", zone)) for zone in (None, "UTC"))
    assert java.isoTimestampToMicros(in_json(local)) == micros
    assert java.isoTimestamptzToMicros(in_json(zoned)) == micros
    assert java.isUTCTimestamptz(in_json(zoned))
