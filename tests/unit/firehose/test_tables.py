"""Appends to real Iceberg tables in the local S3 and Glue, and what failed in the bucket."""

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import boto3
import duckdb
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import DayTransform, IdentityTransform

from cdclake import naming
from cdclake.debezium.refusals import UNREADABLE_VALUE
from cdclake.iceberg.schemas import quarantine_schema
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.reader.catalog import Catalog
from cdclake.jobs.reader.duck import _secret, extension_file
from cdclake.jobs.reader.tail import added_files, files_since, with_tail
from cdclake.local.components.installed import REGION
from cdclake.local.firehose.failed import failed_records
from cdclake.local.firehose.failures import ErrorPrefix
from cdclake.local.firehose.iceberg_tables import LogTables
from cdclake.local.firehose.records import Failure, Record
from cdclake.local.firehose.rows import read_row
from cdclake.local.process.credentials import Login
from cdclake.redrive.objects import Line
from cdclake.redrive.routed_rows import Redrive
from cdclake.redrive.unwrap import unwrapped
from tests.recorded.firehose import (
    INGESTED_AT,
    Logs,
    delivered,
    iceberg_schema,
    made_rows,
    stream_of,
)
from tests.recorded.recording import Recording
from tests.unit.local.aws_process import KEY_ID, SECRET, AwsProcess
from tests.unit.local.test_aws_server import BUCKET

RECORDING = Recording.load("changes")
PLAN = delivered(RECORDING.plan)
TABLE = PLAN.table("plain")
LOG = TABLE.changes
ROWS = [*made_rows(RECORDING.of_topic(TABLE.topic), TABLE, PLAN).values()]
HOUR = 3_600_000_000


def client(server: AwsProcess, service: str) -> Any:
    """In the region of the local lake, for catalogs have one."""
    return boto3.client(
        service,
        endpoint_url=server.url,
        region_name=REGION,
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET,
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsProcess]:
    running = AwsProcess(tmp_path_factory.mktemp("aws") / "aws").start()
    client(running, "s3").create_bucket(Bucket=BUCKET)
    yield running
    running.kill()


@pytest.fixture
def session(
    server: AwsProcess, monkeypatch: pytest.MonkeyPatch
) -> Iterator[duckdb.DuckDBPyConnection]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with duckdb.connect() as opened:
        for extension in ("avro", "httpfs", "iceberg"):
            opened.execute(f"LOAD '{extension_file(extension)}'")
        opened.execute(_secret(server.url))
        yield opened


@pytest.fixture(scope="module")
def tables(server: AwsProcess) -> LogTables:
    """A log as the jobs make it, empty."""
    made = LogTables(server.url, server.url, Login(KEY_ID, SECRET), "lake")
    catalog = made._catalog
    catalog.create_namespace("lake", {"location": f"s3://{BUCKET}/warehouse"})
    schema = Logs(PLAN).schema(LOG)
    ingested, partition = (schema.find_field(n) for n in (naming.INGESTED_AT, naming.PARTITION))
    catalog.create_table(
        ("lake", LOG),
        schema,
        location=f"s3://{BUCKET}/warehouse/{LOG}",
        partition_spec=PartitionSpec(
            PartitionField(ingested.field_id, 1000, DayTransform(), f"{ingested.name}_day"),
            PartitionField(partition.field_id, 1001, IdentityTransform(), partition.name),
        ),
        properties={"format-version": "2"},
    )
    return made


def test_appended_rows_are_there_and_tell_when_they_were_ingested(
    server: AwsProcess, tables: LogTables, session: duckdb.DuckDBPyConnection
) -> None:
    """The second commit brings what was ingested before the first one's rows."""
    catalog = Catalog(client(server, "glue"), client(server, "s3"), "lake")
    moments = (INGESTED_AT, INGESTED_AT - 30 * HOUR, INGESTED_AT + HOUR)
    for moment in moments:
        tables.append(LOG, [{**row, naming.INGESTED_AT: moment} for row in ROWS])
    log = catalog.load(LOG)
    assert log.current is not None
    found = session.execute(
        f"SELECT epoch_us({naming.INGESTED_AT}), {naming.POSITION}, {naming.UNAVAILABLE}"
        f" FROM iceberg_scan('{log.location}')"
    ).fetchall()
    wanted = [(m, r[naming.POSITION], r[naming.UNAVAILABLE]) for m in moments for r in ROWS]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)

    def begins(sequence: int) -> int:
        applied = AppliedThrough(INGESTED_AT, sequence=sequence)
        return with_tail(session, applied, log, log.current).ingested

    assert log.current.sequence == 3
    assert [begins(sequence) for sequence in range(4)] == [
        INGESTED_AT - 30 * HOUR - 1, INGESTED_AT - 30 * HOUR - 1, INGESTED_AT + HOUR - 1,
        INGESTED_AT,
    ]  # fmt: skip
    files = list(files_since(session, log, log.current, 0))
    assert sorted(file.sequence for file in files) == [1, 2, 3]
    added = added_files(session, log)
    assert {*added} == {file.path for file in files}
    assert sorted(added.values()) == sorted(s.committed_ms for s in log.snapshots.values())
    # The second commit's rows have collapsed: who has read it does not read its files again.
    day = datetime.fromtimestamp(INGESTED_AT / 1_000_000, UTC).date()
    noted = {naming.COLLAPSE_COMPLETE: f"{day}", naming.COLLAPSED_SEQUENCE: "1"}
    log = replace(log, properties=noted)
    assert [begins(sequence) for sequence in range(3)] == [
        INGESTED_AT - 30 * HOUR - 1, INGESTED_AT + HOUR - 1, INGESTED_AT + HOUR - 1,
    ]  # fmt: skip


def test_the_quarantine_takes_rows_as_the_redrive_makes_them(
    server: AwsProcess, tables: LogTables, session: duckdb.DuckDBPyConnection
) -> None:
    tables._catalog.create_table(
        ("lake", naming.QUARANTINE), iceberg_schema(quarantine_schema(PLAN)),
        location=f"s3://{BUCKET}/warehouse/q", properties={"format-version": "2"},
    )  # fmt: skip
    line = Line("processing-failed", "changes-plain", "s3://b/k", 3, b'{"rawData": "AP9hYg=="}')
    made = Redrive(PLAN, "changes", dict).route(line, 1_790_000_000_000_000)
    assert made is not None and made.relation == naming.QUARANTINE
    _, row = unwrapped(made.record())
    for _ in range(2):  # Firehose may
        fitting = read_row(json.dumps(row).encode(), tables.schema(naming.QUARANTINE))
        tables.append(naming.QUARANTINE, [fitting])
    log = Catalog(client(server, "glue"), client(server, "s3"), "lake").load(naming.QUARANTINE)
    [found] = session.execute(
        'SELECT DISTINCT topic, partition, "offset", key, value, reason,'
        f" epoch_us(quarantined_at) FROM iceberg_scan('{log.location}')"
    ).fetchall()
    assert found == (
        "s3://b/k", None, 3, None, b"\x00\xffab", UNREADABLE_VALUE, 1_790_000_000_000_000,
    )  # fmt: skip


def keys_of(s3: Any, folder: str, stream: str) -> list[str]:
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=f"firehose/{folder}")["Contents"]
    keys = [entry["Key"] for entry in listed]
    return [key for key in keys if key.rpartition("/")[2].startswith(stream)]


def test_what_failed_lies_in_the_form_that_aws_documents(server: AwsProcess) -> None:
    s3 = client(server, "s3")
    prefix = ErrorPrefix(s3, BUCKET, stream_of(TABLE), "shop")
    prefix.write("processing-failed", [])
    record = Record(0, 7, 1_790_000_000_123, b"\x00raw")
    failed = Failure(record=record, code="Lambda.X", message="why", attempts=4, raw=b"\x00raw")
    prefix.write("processing-failed", [failed, failed])
    prefix.write("iceberg-failed", [failed])
    # Its objects begin like those of `shop`, whose names have a version.
    ErrorPrefix(s3, BUCKET, stream_of(TABLE), "shop-1").write("iceberg-failed", [failed] * 5)
    stream = stream_of(TABLE, name="shop")
    told = failed_records(s3, BUCKET, stream, "shop")
    assert told is not None and (told.records, told.reason) == (3, "Lambda.X: why")
    assert told.folder.startswith(f"s3://{BUCKET}/firehose/")
    assert failed_records(s3, BUCKET, stream, "sho") is None
    s3.delete_object(Bucket=BUCKET, Key=keys_of(s3, "iceberg-failed", "shop-1-1-")[0])
    keys = keys_of(s3, "", "")
    assert [key.split("/")[1] for key in keys] == ["iceberg-failed", "processing-failed"]
    bodies = [s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys]
    by_table, by_function = ([json.loads(line) for line in body.splitlines()] for body in bodies)
    assert len(by_table) == 1 and len(by_function) == 2
    assert "lambdaArn" in by_function[0] and "lambdaArn" not in by_table[0]
    assert base64.b64decode(by_table[0].pop("rawData")) == b"\x00raw"
    assert by_table[0].pop("attemptEndingTimestamp") > 1_790_000_000_000
    assert by_table[0] == {
        "attemptsMade": 4, "arrivalTimestamp": 1_790_000_000_123,
        "errorCode": "Lambda.X", "errorMessage": "why",
    }  # fmt: skip
