"""The engines of the tests read each kind of deletes as the table of reader facts says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from cdclake.iceberg.reader_facts import READER_FACTS
from cdclake.jobs.reader.duck import extension_file

pytestmark = pytest.mark.spark
COLUMNS = (
    "id int, text string, zoned timestamp, local timestamp_ntz, amount decimal(38,2), bytes binary,"
    " list array<string>, positions map<string,string>"
)
NOON = datetime(2024, 1, 1, 12)
VALUES = (
    "string(id), timestamp'2024-01-01 12:00:00', timestamp_ntz'2024-01-01 12:00:00',"
    " 1.50, binary('b'), array('l'), map('k', 'v')"
)
ROW = ("new", NOON.replace(tzinfo=UTC), NOON, Decimal("1.50"), b"b", ["l"], {"k": "v"})
KINDS = {"position_deletes": (2, "PARQUET"), "deletion_vectors": (3, "PUFFIN")}


class DeletedRows:
    """A table with the rows 0 to 9, whose rows below 3 are deleted in one way."""

    def __init__(self, spark: SparkSession, kind: str) -> None:
        self.spark = spark
        self.name = f"lake.deletes.{kind}"
        version, file_format = KINDS.get(kind, (2, "PARQUET"))
        spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.deletes")
        spark.sql(
            f"CREATE TABLE {self.name} ({COLUMNS}) USING iceberg TBLPROPERTIES"
            f" ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read',"
            " 'write.update.mode' = 'merge-on-read')"
        )
        for start in (0, 5):
            rows = f"(SELECT int(id) AS id FROM range({start}, {start + 5}, 1, 1))"
            spark.sql(f"INSERT INTO {self.name} SELECT id, {VALUES} FROM {rows}")
        if kind == "equality_deletes":
            self._delete_by_equality(range(3))
        else:
            spark.sql(f"DELETE FROM {self.name} WHERE id < 3")
            spark.sql(f"UPDATE {self.name} SET text = 'new' WHERE id IN (4, 9)")
        written = spark.sql(f"SELECT content, file_format FROM {self.name}.delete_files").collect()
        content = 2 if kind == "equality_deletes" else 1
        assert {tuple(row) for row in written} == {(content, file_format)}

    def _delete_by_equality(self, keys: range) -> None:
        jvm: Any = self.spark._jvm
        data = jvm.org.apache.iceberg.data
        table = self._loaded()
        schema = table.schema().select(["id"])
        ids = self.spark.sparkContext._gateway.new_array(jvm.int, 1)  # type: ignore[union-attr]
        ids[0] = schema.findField("id").fieldId()
        appenders = data.GenericAppenderFactory(table.schema(), table.spec(), ids, schema, None)
        path = table.locationProvider().newDataLocation("deletes.parquet")
        file = jvm.org.apache.iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(
            table.io().newOutputFile(path)
        )
        parquet = jvm.org.apache.iceberg.FileFormat.PARQUET
        writer = appenders.newEqDeleteWriter(file, parquet, None)
        for key in keys:
            row = data.GenericRecord.create(schema)
            row.setField("id", key)
            writer.write(row)
        writer.close()
        table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
        self.spark.sql(f"REFRESH TABLE {self.name}")

    def _loaded(self) -> Any:
        jvm: Any = self.spark._jvm
        util = jvm.org.apache.iceberg.spark.Spark3Util
        return util.loadIcebergTable(self.spark._jsparkSession, self.name)

    @property
    def metadata(self) -> str:
        location = self._loaded().operations().current().metadataFileLocation()
        return str(location).removeprefix("file:")


def by_spark(table: DeletedRows) -> list[tuple[Any, ...]]:
    rows = [tuple(row) for row in table.spark.table(table.name).collect()]
    # A driver's `datetime` is that of its zone, which is UTC here.
    return [
        (*row[:2], row[2].replace(tzinfo=UTC), *row[3:5], bytes(row[5]), *row[6:]) for row in rows
    ]


def by_duckdb(table: DeletedRows) -> list[tuple[Any, ...]]:
    with duckdb.connect() as session:
        for extension in ("avro", "iceberg"):
            session.execute(f"LOAD '{extension_file(extension)}'")
        session.execute("SET TimeZone = 'UTC'")
        return session.execute(f"FROM iceberg_scan('{table.metadata}')").fetchall()


def by_pyiceberg(table: DeletedRows) -> list[tuple[Any, ...]]:
    rows = StaticTable.from_metadata(table.metadata).scan().to_arrow().to_pylist()
    return [(*list(row.values())[:-1], dict(row["positions"])) for row in rows]


READERS: dict[str, Callable[[DeletedRows], list[tuple[Any, ...]]]] = {
    "spark": by_spark,
    "duckdb": by_duckdb,
    "pyiceberg": by_pyiceberg,
}


@pytest.mark.parametrize("kind", ["position_deletes", "deletion_vectors", "equality_deletes"])
def test_deletes_are_read_as_the_table_of_facts_says(spark: SparkSession, kind: str) -> None:
    table = DeletedRows(spark, kind)
    for name, read in READERS.items():
        fact = getattr(READER_FACTS[name], kind)
        if fact.text.startswith("no"):
            with pytest.raises(ValueError, match="not yet support"):
                read(table)
            continue
        rows = {row[0]: row[1:] for row in read(table)}
        assert sorted(rows) == list(range(3, 10)), name
        if kind != "equality_deletes":
            assert rows[4] == rows[9] == ROW, name
