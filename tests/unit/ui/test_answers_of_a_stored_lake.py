"""Answers of the page and figures of `status`, read from a stored lake by the real readers."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import boto3
import duckdb
import pytest

from cdclake import naming
from cdclake.cli import main
from cdclake.cli.page_answers import deployed_answers, local_answers
from cdclake.config.deployment import load_deployment
from cdclake.errors import InputError
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.reader import duck
from cdclake.local.lake import lake as lake_module
from cdclake.local.reader import table_figures as figures_module
from cdclake.local.reader.duck import lake_reader
from cdclake.local.reader.table_figures import table_figures
from cdclake.plan import Table
from cdclake.trace.trace_report import timeline
from tests.stored_lake.stored import ARCHIVES, FOLDER, StoredLake, stored_lake

Answers = Mapping[str, Any]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredLake]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with stored_lake(ARCHIVES[-1], tmp_path_factory.mktemp("stored"), port) as lake:
        yield lake


@pytest.fixture
def answers(stored: StoredLake, monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Answers of the stored lake, as if its components ran."""
    monkeypatch.setattr(lake_module, "open_lake", lambda _: stored.lake)
    return local_answers()


def test_figures_have_files_and_percentiles(stored: StoredLake) -> None:
    figures = table_figures(stored.lake)
    for name in ("orders", "order_lines"):
        found = figures[name]
        assert found["files"] > 0
        assert 0 < found["freshness_p50_s"] <= found["freshness_p95_s"]
    assert figures == table_figures(stored.lake)  # the second time from the cache


def test_figures_are_read_again_when_events_may_lack_other_columns(
    stored: StoredLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_figures(stored.lake)
    read: list[str] = []

    def note(_: object, tables: Sequence[Table]) -> dict[str, Any]:
        read.extend(table.name for table in tables)
        return {}

    monkeypatch.setattr(figures_module, "_read", note)
    table_figures(stored.lake)
    assert read == []
    plan = stored.lake.plan
    small = [
        replace(table, columns=tuple(replace(column, type="uuid") for column in table.columns))
        for table in plan.tables
    ]
    other = {table.name for table in plan.tables if table.may_be_unsent}
    table_figures(replace(stored.lake, plan=replace(plan, tables=tuple(small))))
    assert set(read) == other != set()


def test_a_changelog_that_cannot_be_read_fails_no_query_of_the_state(
    stored: StoredLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, table = lake_reader(stored.lake), stored.lake.plan.table("orders")
    client, place = stored.lake.client("s3"), {"Bucket": stored.lake.bucket}
    folder, _, _ = reader.catalog.load(table.changes).location.partition("/metadata/")
    prefix = f"{urlparse(folder).path.lstrip('/')}/data/"
    listed = client.list_objects_v2(**place, Prefix=prefix)["Contents"]
    files = {e["Key"]: client.get_object(**place, Key=e["Key"])["Body"].read() for e in listed}
    monkeypatch.setattr(duck, "is_applied", lambda *_: False)
    monkeypatch.setattr(duck, "applied_at", lambda *_: AppliedThrough())
    with reader.open([table]) as session:
        [rows] = session.execute(f"SELECT count(*) FROM {table.name}").fetchall()
    for key in files:
        client.delete_object(**place, Key=key)
    try:
        with reader.open([table]) as session:
            assert session.execute(f"SELECT count(*) FROM {table.name}").fetchall() == [rows]
            with pytest.raises(duckdb.Error):
                session.execute(f"SELECT count(*) FROM {naming.current_name(table.name)}")
    finally:
        for key, content in files.items():
            client.put_object(**place, Key=key, Body=content)


def test_a_table_has_its_columns_and_snapshots(answers: Answers) -> None:
    found = answers["table"]({"table": ["public.orders"]})
    masks = {column["column"]: column["mask"] for column in found["columns"]}
    assert (found["table"], found["key"]) == ("orders", ["order_id"])
    assert masks["customer"] == "hash" and masks["note"] is None
    answer = answers["snapshots"]({"table": ["orders"]})
    listed = answer["snapshots"]
    assert {entry["relation"] for entry in listed} == {"orders", "orders_changes"}
    assert sum(entry["current"] for entry in listed) == 2
    assert answer["schema_changes"] == []


@pytest.fixture
def deployment(stored: StoredLake, tmp_path: Path) -> Path:
    """A pipeline file whose deployment has the stored lake's tables and control objects."""
    file = tmp_path / "stored.yaml"
    file.write_text((FOLDER / "pipeline.yaml").read_text() + "environments: {dev: {}}\n")
    prefix = load_deployment(file, "dev").prefix
    boto3.client("glue").create_job(
        Name=naming.glue_job_name(prefix, naming.STREAM_JOB),
        Role="r",
        Command={"Name": "gluestreaming", "ScriptLocation": "s3://state/x.py"},
        DefaultArguments={
            "--control": f"s3://{stored.lake.bucket}/control",
            "--conf": f"spark.sql.catalog.lake.warehouse={stored.lake.warehouse_uri}",
        },
    )
    return file


def test_the_quarantine_of_a_deployment_has_its_repair(answers: Answers, deployment: Path) -> None:
    found = deployed_answers(deployment, "dev")["quarantine"]({})["events"]
    local = answers["quarantine"]({})["events"]
    assert [event["key"] for event in found] == [event["key"] for event in local]
    options = f"--target aws --file {deployment} --environment dev`"
    assert all(event["remedy"].endswith(options) for event in found)


def test_the_quarantine_has_bytes_and_a_repair(answers: Answers) -> None:
    events = answers["quarantine"]({})["events"]
    assert events
    for event in events:
        assert event["bytes"] > 0 and event["reasons"]
        assert f"`cdclake replay --table {event['table']}`" in event["remedy"]
    assert json.loads(json.dumps(events)) == events
    with pytest.raises(InputError, match="nothing"):
        answers["quarantine"]({"table": ["nothing"]})


def test_a_row_of_a_deployment_is_traced_by_its_lake(
    answers: Answers, deployment: Path, stored: StoredLake
) -> None:
    trace = deployed_answers(deployment, "dev")["trace"]
    reader = lake_reader(stored.lake)
    with reader.open([reader.plan.table("orders")]) as session:
        query = "SELECT order_id, note FROM orders_current ORDER BY order_id LIMIT 1"
        [(order, note)] = session.execute(query).fetchall()
    found = trace({"table": ["public.orders"], "key": [str(order)]})
    assert found["situation"] == "applied"
    assert found["readers"].keys() == {"orders", "orders_current"}  # the source is not asked
    assert found["readers"]["orders_current"]["note"] == note
    assert {"source", "changelog"} <= {hop["hop"] for hop in found["hops"]}
    newest, lines = found["events"][-1], list(timeline(found))
    assert newest["topic"] == "stored.public.orders"
    assert lines[0] == f"orders {order}: applied"
    place = f"{newest['topic']}, partition {newest['partition']}, offset {newest['offset']}"
    assert any(line.endswith(f"time unknown  Kafka: {place}") for line in lines)


def test_a_row_that_a_deployments_lake_lacks_is_not_said_to_be_missing_in_the_source(
    answers: Answers, deployment: Path
) -> None:
    found = deployed_answers(deployment, "dev")["trace"]({"table": ["orders"], "key": ["-5"]})
    [finding] = found["findings"]
    assert finding["code"] == "not_in_lake"
    options = f"--target aws --file {deployment} --environment dev"
    assert f"`cdclake verify --table orders {options}`" in finding["remedy"]


def test_stored_values_of_a_deployment_are_refused(
    deployment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--target", "aws", "--file", str(deployment), "--environment", "dev"]
    with pytest.raises(SystemExit) as caught:
        main.main(["trace", "orders", "1", "--stored", *where])
    assert caught.value.code == 2
    assert "--stored applies to the local lake only" in capsys.readouterr().err
