"""Catalog entries of Hudi copies in moto's Glue, and the timeline in the copy's folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.glue.responses import GlueResponse
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from cdclake.debezium.types import parse_type
from cdclake.errors import TableError
from cdclake.hudi_copy import HudiCopy
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.publish import publish as publishing
from cdclake.jobs.publish.copy_stamp import CopyStamp, record_key, stamp_of
from cdclake.jobs.publish.hudi_entries import HudiEntries
from cdclake.jobs.publish.hudi_timeline import HudiCommit, newest_stamped, partition_folders
from cdclake.local.aws.glue_store import update_table
from cdclake.plan import Column, Table

DATABASE, FOLDER = "cdc", "s3://lake/cdc.db/artists_hudi"
SCHEMA = StructType(
    [
        StructField("artist_id", LongType()),
        StructField("nationality", StringType()),
        StructField("seen", TimestampType()),
    ]
)


def copy_of(**fields: Any) -> HudiCopy:
    given = {"name": "artists_hudi", "table": "artists", "type": "mor", "schedule": "rate(1 hour)"}
    return HudiCopy(**{**given, "partition_by": "nationality", **fields})


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(GlueResponse, "update_table", update_table)  # moto's archives all versions
    with mock_aws():
        client = boto3.client("glue")
        client.create_database(DatabaseInput={"Name": DATABASE})
        yield client


def entry(glue: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = glue.get_table(DatabaseName=DATABASE, Name=name)["Table"]
    return found


def test_a_merge_on_read_copy_has_two_entries(glue: Any) -> None:
    HudiEntries(DATABASE, copy_of()).put(FOLDER, SCHEMA, ["nationality=Peru"])
    formats = {
        name: (storage["InputFormat"], storage["SerdeInfo"]["Parameters"])
        for name in ("artists_hudi_ro", "artists_hudi_rt")
        if (storage := entry(glue, name)["StorageDescriptor"])
    }
    hadoop = "org.apache.hudi.hadoop"
    assert formats == {
        "artists_hudi_ro": (
            f"{hadoop}.HoodieParquetInputFormat",
            {"path": FOLDER, "hoodie.query.as.ro.table": "true"},
        ),
        "artists_hudi_rt": (
            f"{hadoop}.realtime.HoodieParquetRealtimeInputFormat",
            {"path": FOLDER, "hoodie.query.as.ro.table": "false"},
        ),
    }


def test_an_entry_has_the_columns_and_the_partitions(glue: Any) -> None:
    entries = HudiEntries(DATABASE, copy_of(type="cow"))
    entries.put(FOLDER, SCHEMA, ["nationality=Peru"])
    entries.put(FOLDER, SCHEMA, ["nationality=Côte d%27Ivoire", "nationality=Peru"])
    found = entry(glue, "artists_hudi")
    columns = {each["Name"]: each["Type"] for each in found["StorageDescriptor"]["Columns"]}
    assert [*columns][:5] == [
        "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key",
        "_hoodie_partition_path", "_hoodie_file_name",
    ]  # fmt: skip
    assert (columns["artist_id"], columns["seen"]) == ("bigint", "timestamp")
    assert found["PartitionKeys"] == [{"Name": "nationality", "Type": "string"}]
    assert "nationality" not in columns
    spark = json.loads(found["Parameters"]["spark.sql.sources.schema.part.0"])
    assert [field["name"] for field in spark["fields"]][-1] == "nationality"
    listed = glue.get_partitions(DatabaseName=DATABASE, TableName="artists_hudi")["Partitions"]
    assert {each["Values"][0]: each["StorageDescriptor"]["Location"] for each in listed} == {
        "Peru": f"{FOLDER}/nationality=Peru",
        "Côte d'Ivoire": f"{FOLDER}/nationality=Côte d%27Ivoire",
    }


@pytest.mark.parametrize("count", [1, 30])
def test_partitions_without_a_folder_are_deleted(glue: Any, count: int) -> None:
    """Their values may be those of erased rows."""
    entries = HudiEntries(DATABASE, copy_of())
    entries.put(FOLDER, SCHEMA, [f"nationality={number}" for number in range(count)])
    entries.put(FOLDER, SCHEMA, ["nationality=new"])
    entries.put(FOLDER, SCHEMA, [])
    for name in ("artists_hudi_ro", "artists_hudi_rt"):
        assert glue.get_partitions(DatabaseName=DATABASE, TableName=name)["Partitions"] == []


def test_a_new_column_is_added_to_the_entry(glue: Any) -> None:
    entries = HudiEntries(DATABASE, copy_of(type="cow", partition_by=None))
    entries.put(FOLDER, SCHEMA, [])
    wider = StructType([*SCHEMA.fields, StructField("bio", StringType())])
    entries.put(FOLDER, wider, [])
    versions = glue.get_table_versions(DatabaseName=DATABASE, TableName="artists_hudi")
    assert len(versions["TableVersions"]) == 1
    names = [c["Name"] for c in entry(glue, "artists_hudi")["StorageDescriptor"]["Columns"]]
    assert names[5:] == ["artist_id", "nationality", "seen", "bio"]


@pytest.mark.parametrize("count", [1, 150])
def test_a_changed_type_is_that_of_every_partition(glue: Any, count: int) -> None:
    entries = HudiEntries(DATABASE, copy_of())
    folders = [f"nationality={number}" for number in range(count)]
    entries.put(FOLDER, SCHEMA, folders)
    wide = StructType([StructField("artist_id", StringType()), *SCHEMA.fields[1:]])
    entries.put(FOLDER, wide, [*folders, "nationality=new"])
    for name in ("artists_hudi_ro", "artists_hudi_rt"):
        storage = entry(glue, name)["StorageDescriptor"]
        pages = glue.get_paginator("get_partitions").paginate(DatabaseName=DATABASE, TableName=name)
        found = [each for page in pages for each in page["Partitions"]]
        assert len(found) == count + 1
        for each in found:
            location = f"{FOLDER}/nationality={each['Values'][0]}"
            assert each["StorageDescriptor"] == storage | {"Location": location}


def test_partitions_of_unchanged_types_are_not_written(
    glue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = HudiEntries(DATABASE, copy_of())
    entries.put(FOLDER, SCHEMA, ["nationality=Peru"])
    monkeypatch.setattr(entries._glue, "batch_update_partition", None)
    monkeypatch.setattr(entries._glue, "batch_create_partition", None)
    entries.put(FOLDER, SCHEMA, ["nationality=Peru"])


def test_a_partition_that_glue_refuses_is_an_error(
    glue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = HudiEntries(DATABASE, copy_of())
    refusal = {"ErrorCode": "InternalServiceException", "ErrorMessage": "later"}
    answer = {"Errors": [{"PartitionValues": ["Peru"], "ErrorDetail": refusal}]}
    monkeypatch.setattr(entries._glue, "batch_create_partition", lambda **_: answer)
    with pytest.raises(TableError, match=r"Glue refused a partition of the copy: .*later"):
        entries.put(FOLDER, SCHEMA, ["nationality=Peru"])


def test_another_table_of_the_name_is_left_alone(glue: Any) -> None:
    other = {"Name": "artists_hudi", "Parameters": {"table_type": "ICEBERG"}}
    glue.create_table(DatabaseName=DATABASE, TableInput=other)
    with pytest.raises(TableError, match="another table 'artists_hudi', which is not a Hudi table"):
        HudiEntries(DATABASE, copy_of(type="cow")).put(FOLDER, SCHEMA, [])
    assert entry(glue, "artists_hudi")["Parameters"] == {"table_type": "ICEBERG"}


def test_the_newest_stamp_is_that_of_the_last_commit_that_has_one(tmp_path: Path) -> None:
    old, new = CopyStamp(1, "", "c", "l"), CopyStamp(2, "f", "c", "l")
    timeline = tmp_path / ".hoodie"
    timeline.mkdir()

    def commit(name: str, stamp: CopyStamp | None) -> None:
        extra = {} if stamp is None else {"cdclake.stamp": stamp.to_json()}
        stats = {
            "a=1": [
                {"totalWriteErrors": 1},
                {"totalWriteErrors": 0},
            ]
        }
        (timeline / name).write_text(
            json.dumps({"partitionToWriteStats": stats, "extraMetadata": extra})
        )

    assert newest_stamped(ObjectStorage(), str(tmp_path)) is None
    commit("20260101000000001.deltacommit", old)
    commit("20260101000000003.deltacommit", new)
    commit("20260101000000004.commit", None)  # a compaction
    (timeline / "20260101000000005.deltacommit.inflight").write_text("")
    found = newest_stamped(ObjectStorage(), str(tmp_path))
    assert found is not None
    assert (found.stamp, found.failed) == (new, 1)


def test_folders_of_partitions_are_those_that_hudi_has_marked(tmp_path: Path) -> None:
    for name in ("country=Peru", "country=Kenya"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".hoodie_partition_metadata").touch()
        (tmp_path / name / "rows.parquet").touch()
    (tmp_path / "country=Erased").mkdir()
    (tmp_path / "country=Erased" / ".hoodie_partition_metadata").touch()
    (tmp_path / "elsewhere").mkdir()
    assert partition_folders(ObjectStorage(), str(tmp_path)) == ["country=Kenya", "country=Peru"]


def table_of(*key: tuple[str, str], **fields: Any) -> Table:
    columns = tuple(Column(source=name, name=name, type=kind) for name, kind in key)
    assert all(parse_type(kind) for _, kind in key)
    return Table(
        schema="public", table="t", name="t", topic="x", key=tuple(name for name, _ in key),
        columns=columns, **fields,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ([("id", "bigint")], "id"),
        ([("id", "integer")], "id"),
        ([("id", "uuid")], "cdc_key"),
        ([("id", "numeric(10,2)")], "cdc_key"),
        ([("a", "bigint"), ("b", "bigint")], "cdc_key"),
    ],
)
def test_the_key_of_a_copy_is_unambiguous(key: list[tuple[str, str]], column: str) -> None:
    assert record_key(table_of(*key)) == column


def written(known: CopyStamp, table: Table, applied: AppliedThrough) -> list[str]:
    """Return what is written to a copy with this stamp."""
    found: list[str] = []
    rows = SimpleNamespace(count=lambda: 1)
    state = SimpleNamespace(dtypes=[(each.name, each.type) for each in table.columns])
    source: Any = SimpleNamespace(
        table=table, applied=applied, state=state, whole=lambda: rows, since=lambda _: rows
    )
    writer: Any = SimpleNamespace(
        copy=copy_of(partition_by=None), newest=lambda: HudiCommit(known, 0),
        write=lambda _, operation, stamp: found.append(operation),
    )  # fmt: skip
    publishing._write(writer, source, "")
    return found


def test_a_copy_of_another_table_is_written_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "persisted", nullcontext)
    table, applied = table_of(("id", "bigint")), AppliedThrough(ingested=7)
    stamp = stamp_of(copy_of(partition_by=None), table, applied, "")
    behind = replace(stamp, through=6)
    expected: list[tuple[CopyStamp, list[str]]] = [
        (stamp, []),
        (behind, ["upsert"]),
        (replace(stamp, table="another"), ["insert_overwrite_table"]),
        (replace(behind, table="another"), ["insert_overwrite_table"]),
        (replace(stamp, rebuilt="another"), ["insert_overwrite_table"]),
        (replace(behind, rebuilt="another"), ["insert_overwrite_table"]),
        # An earlier version did not note the table.
        (replace(stamp, table=""), []),
        (replace(behind, table=""), ["upsert"]),
    ]
    for known, operations in expected:
        assert written(known, table, applied) == operations


def test_a_stamp_differs_by_whatever_the_copy_depends_on() -> None:
    applied = AppliedThrough(ingested=7, floor="f", sequence=3)
    table, copy = table_of(("id", "bigint")), copy_of(partition_by=None)
    stamps = {
        stamp_of(copy, table, applied, ""),
        stamp_of(copy, table, applied, "an erasure"),
        stamp_of(copy, table, AppliedThrough(ingested=8, floor="f"), ""),
        stamp_of(copy, table, AppliedThrough(ingested=7, floor="g"), ""),
        stamp_of(copy, table, AppliedThrough(ingested=7, floor="f", rebuilt="r"), ""),
        stamp_of(copy, table_of(("id", "bigint"), deletes="soft"), applied, ""),
        stamp_of(copy, table_of(("id", "integer")), applied, ""),
        stamp_of(copy_of(), table, applied, ""),
        stamp_of(copy_of(type="cow"), table, applied, ""),
    }
    assert len(stamps) == 9
    firehose = table_of(("id", "bigint"), delivery="firehose", apply="scheduled")
    assert stamp_of(copy, firehose, applied, "").through == 3
    stored = stamp_of(copy, table, applied, "").to_json()
    assert CopyStamp.from_json(stored) in stamps
    assert CopyStamp.from_json(stored.replace("{", '{"of_a_newer_version": 1, ', 1)) in stamps
