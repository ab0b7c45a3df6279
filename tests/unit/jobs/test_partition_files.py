"""Files of derived tables: what a task writes, what the catalog says, and what DuckDB reads."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import duckdb
import pyarrow as pa
import pytest
from moto import mock_aws
from moto.glue.responses import GlueResponse

from cdclake.derived_table import DerivedTable, FileFormat
from cdclake.errors import TableError
from cdclake.jobs.derived import partition_files
from cdclake.jobs.derived.external_table import ExternalTable, table_input
from cdclake.jobs.derived.file_copy import folder_values
from cdclake.jobs.derived.partition_files import LINE, FileWriter
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.reader.file_tables import file_rows
from cdclake.local.aws.glue_store import update_table

ROWS = [("Kenya", 1, "0.10"), ("Peru", 2, "12345678901234567890.12"), ("Peru", 3, None)]
COLUMNS = {"country": "string", "id": "bigint", "total": "decimal(38,2)"}


def derived(kind: FileFormat, *by: str) -> DerivedTable:
    return DerivedTable(
        name="t", sql="", key=("id",), partition_by=by, format=kind, schedule="", sources=()
    )


def batches(
    kind: FileFormat, rows: Sequence[tuple[Any, ...]], size: int
) -> Iterator[pa.RecordBatch]:
    """The rows as Spark hands them to a task, in blocks of this size."""
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        country = pa.array([row[0] for row in part], pa.string())
        if kind == "json":
            lines = [json.dumps({"id": row[1], "total": row[2]}) for row in part]
            yield pa.RecordBatch.from_arrays([country, pa.array(lines)], ["country", LINE])
            continue
        numbers = pa.array([row[1] for row in part], pa.int64())
        totals = pa.array(
            [None if row[2] is None else Decimal(row[2]) for row in part], pa.decimal128(38, 2)
        )
        yield pa.RecordBatch.from_arrays([country, numbers, totals], ["country", "id", "total"])


def written(folder: Path, kind: FileFormat, *, size: int = 2) -> list[dict[str, Any]]:
    writer = FileWriter(str(folder), kind, ("country",), ObjectStorage())
    return [row for told in writer(batches(kind, ROWS, size)) for row in told.to_pylist()]


def read(folder: Path, kind: FileFormat, *, by: tuple[str, ...] = ("country",)) -> list[Any]:
    entry = table_input(derived(kind, *by), str(folder), COLUMNS, [("Kenya",), ("Peru",)])
    files = sum(1 for path in folder.rglob("*") if path.is_file())
    s3 = SimpleNamespace(list_objects_v2=lambda **_: {"KeyCount": files})
    select = file_rows(s3, entry)
    query = f"SELECT country, id, total::varchar FROM ({select}) ORDER BY id"
    return duckdb.connect().execute(query).fetchall()


@pytest.mark.parametrize("kind", ["parquet", "json"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_rows_are_in_the_folder_of_their_partition(
    tmp_path: Path, kind: FileFormat, size: int
) -> None:
    told = written(tmp_path, kind, size=size)
    assert [(row["rows"], json.loads(row["partition"])) for row in told] == [
        (1, ["Kenya"]), (2, ["Peru"]),
    ]  # fmt: skip
    for row in told:
        country = json.loads(row["partition"])[0]
        assert Path(row["path"]).parent == tmp_path / f"country={country}"
    assert read(tmp_path, kind) == [
        ("Kenya", 1, "0.10"), ("Peru", 2, "12345678901234567890.12"), ("Peru", 3, None),
    ]  # fmt: skip


def test_partition_columns_are_not_in_the_files(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    [first, _] = written(tmp_path, "parquet")
    assert pq.read_schema(first["path"]).names == ["id", "total"]
    assert pq.ParquetFile(first["path"]).metadata.row_group(0).column(0).compression == "GZIP"


def test_a_large_partition_has_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_files, "_ROWS_PER_FILE", 1)
    assert [row["rows"] for row in written(tmp_path, "parquet", size=1)] == [1, 1, 1]
    assert len(read(tmp_path, "parquet")) == 3


def test_an_empty_folder_has_no_rows(tmp_path: Path) -> None:
    assert read(tmp_path, "json") == []


def test_the_catalogs_entry_lists_the_folders() -> None:
    entry = table_input(
        derived("parquet", "country"), "s3://b/t/run", COLUMNS, [("Peru",), ("Kenya",)]
    )
    assert entry["Parameters"] == {
        "classification": "parquet",
        "EXTERNAL": "TRUE",
        "projection.enabled": "true",
        "projection.country.type": "enum",
        "projection.country.values": "Kenya,Peru",
        "storage.location.template": "s3://b/t/run/country=${country}/",
    }
    assert entry["PartitionKeys"] == [{"Name": "country", "Type": "string"}]
    columns = entry["StorageDescriptor"]["Columns"]
    assert columns == [{"Name": "id", "Type": "bigint"}, {"Name": "total", "Type": "decimal(38,2)"}]


@pytest.mark.parametrize(
    "value",
    [
        "c#",
        "a;b",
        "a b",
        "it's",
        'a"b',
        "a:b",
        "[x]",
        "{x}",
        "a&b",
        "~",
        "a+b",
        "Ñandú",
        "nulls",
        "a*",
        ".",
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_a_value_that_names_a_folder_is_read_back(
    tmp_path: Path, kind: FileFormat, value: str
) -> None:
    assert folder_values(derived(kind, "country"), {(value,)}) == [(value,)]
    writer = FileWriter(str(tmp_path), kind, ("country",), ObjectStorage())
    told = [
        row for one in writer(batches(kind, [(value, 1, "2.00")], 1)) for row in one.to_pylist()
    ]
    assert [row["path"] for row in told] == ObjectStorage().list(str(tmp_path))
    assert read(tmp_path, kind) == [(value, 1, "2.00")]


@pytest.mark.parametrize(
    "value",
    [
        None, "", "a,b", "a/b", "50%", " a", "why?", "a=b", "a\\b", "a\nb", "NULL", "null",
        "__HIVE_DEFAULT_PARTITION__",
    ],
)  # fmt: skip
def test_a_value_that_cannot_name_a_folder_is_refused(value: str | None) -> None:
    table = derived("json", "country")
    assert folder_values(table, {("b",), ("a",)}) == [("a",), ("b",)]
    with pytest.raises(TableError, match="a value of country cannot name a folder"):
        folder_values(table, {("a",), (value,)})


def test_the_error_of_a_value_does_not_show_it() -> None:
    with pytest.raises(TableError) as refused:
        folder_values(derived("json", "country"), {("Ada, Zurich",)})
    assert "Ada" not in f"{refused.value} {refused.value.remedy}"


@mock_aws
def test_an_entry_of_another_kind_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    glue = boto3.client("glue", region_name="us-east-1")
    glue.create_database(DatabaseInput={"Name": "db"})
    monkeypatch.setattr(GlueResponse, "update_table", update_table)  # moto's archives all versions
    catalog = ExternalTable("db", "t")
    before = None
    for folder in ("s3://b/t/one", "s3://b/t/two"):
        table = derived("json", "country")
        assert catalog.publish(table, folder, COLUMNS, [("Peru",)]) == before
        before = folder
        stored = glue.get_table(DatabaseName="db", Name="t")["Table"]
        assert stored["StorageDescriptor"]["Location"] == folder
        versions = glue.get_table_versions(DatabaseName="db", TableName="t")["TableVersions"]
        assert len(versions) == 1
    iceberg: Any = {
        "Name": "i",
        "StorageDescriptor": {"Location": "s3://b/i"},
        "Parameters": {"table_type": "ICEBERG"},
    }
    glue.create_table(DatabaseName="db", TableInput=iceberg)
    with pytest.raises(TableError, match="another table of this name, which may be in Iceberg"):
        ExternalTable("db", "i").publish(derived("json"), "s3://b/i/x", COLUMNS, [])
    with pytest.raises(TableError, match="another table of this name, of files in json") as error:
        catalog.check(derived("iceberg"))
    assert error.value.remedy.endswith("drop the other table, and delete its folder, s3://b/t/two")
    assert catalog.check(derived("parquet")) is not None
    assert ExternalTable("db", "new").check(derived("iceberg")) is None
    kept = glue.get_table(DatabaseName="db", Name="i")["Table"]
    assert kept["StorageDescriptor"]["Location"] == "s3://b/i"


def test_days_and_times_of_every_year_are_read_from_json(tmp_path: Path) -> None:
    days = {"+12026-01-02": "12026-01-02", "-0043-03-15": "0044-03-15 (BC)", None: None}
    with gzip.open(tmp_path / "rows.json.gz", "wt") as file:
        for day in days:
            at = None if day is None else f"{day} 09:45:30.123456"
            file.write(json.dumps({"day": day, "moment": at}) + "\n")
    columns = {"day": "date", "moment": "timestamp"}
    entry = table_input(derived("json"), str(tmp_path), columns, [])
    s3 = SimpleNamespace(list_objects_v2=lambda **_: {"KeyCount": 1})
    with duckdb.connect() as session:
        select = file_rows(s3, entry)
        kinds = session.execute(f"SELECT typeof(day), typeof(moment) FROM ({select})").fetchone()
        found = session.execute(
            f"SELECT day::VARCHAR, strftime(moment, '%S.%f') FROM ({select})"
        ).fetchall()
    assert kinds == ("DATE", "TIMESTAMP")
    assert found == [(day, None if day is None else "30.123456") for day in days.values()]
