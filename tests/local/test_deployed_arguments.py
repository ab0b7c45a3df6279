"""The arguments that docs/jobs.md gives each deployed job, given to it on the real local lake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from cdclake import naming
from cdclake.control_objects import forget_name
from cdclake.deployed_jobs import TABLE_JOBS
from cdclake.local.lake.lake import LocalLake, open_lake
from cdclake.local.lake.spark_jobs import RunningJob
from cdclake.local.process.home import Home
from tests.local.deployed_runs import (
    arguments_of,
    deployed_stream,
    lake_of_jobs,
    local_arguments,
    order,
    started,
)
from tests.local.running import RunningLake
from tests.spark.hudi_jvm import needs_hudi

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]
SMALLEST_WORKER = 4 << 30  # Glue's G.025X, whose driver is a worker of its own


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    with lake_of_jobs(tmp_path_factory.mktemp("lake")) as running:
        yield running


@pytest.fixture
def lake(running: RunningLake, monkeypatch: pytest.MonkeyPatch) -> LocalLake:
    for name in ("AWS_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)  # what `open_lake` sets is gone afterwards
    return open_lake(Home(running.home))


@pytest.mark.parametrize(
    "job",
    [pytest.param(j, marks=needs_hudi if j == naming.PUBLISH_JOB else ()) for j in TABLE_JOBS],
)
def test_a_job_that_ends_takes_what_the_page_says(running, lake, job):
    given = arguments_of(lake, job)
    assert started(lake, job, given).process.wait(300) == 0
    report = lake.control.read(naming.report_name(given["--run"]))
    assert report is not None and report.content["ok"]
    assert [line["table"] for line in report.content["tables"]] == given["--tables"].split(",")


@pytest.mark.parametrize("reader", ["spark", "duckdb"])
def test_source_and_lake_are_compared_as_the_page_says(running, lake, reader):
    given = arguments_of(lake, naming.VERIFY_JOB)
    assert given["--reader"] == "spark"
    if reader == "duckdb":
        del given["--reader"]
    assert started(lake, naming.VERIFY_JOB, given).process.wait(300) == 0
    report = lake.control.read(naming.report_name(given["--run"]))
    [table] = report.content["tables"]
    assert report.content["ok"] and table["table"] == "orders"
    assert report.content["reader"] == reader
    assert table["source_rows"] == table["lake_rows"] > 0


@needs_hudi
def test_the_probe_finds_here_what_the_jobs_need(lake):
    given = arguments_of(lake, naming.PROBE_JOB)
    assert given["--checkpoint"] == f"s3://{lake.bucket}/checkpoints/shop/probe"
    assert started(lake, naming.PROBE_JOB, given).process.wait(300) == 0
    report = lake.control.read(naming.report_name(given["--run"])).content
    assert report["ok"] and len(report["checks"]) == 7
    [checkpoint] = [check for check in report["checks"] if check["name"] == "checkpoint"]
    assert "S3AFileSystem" in checkpoint["detail"]


def test_a_comparison_that_cannot_be_says_why(lake):
    arguments = local_arguments(lake, naming.VERIFY_JOB)
    nowhere = json.loads(arguments["--source"]) | {"dbname": "nothing"}
    arguments |= {"--source": json.dumps(nowhere), "--run": "nowhere"}
    assert started(lake, naming.VERIFY_JOB, arguments).process.wait(300) == 1
    told = lake.control.read(naming.report_name("nowhere")).content
    assert (told["ok"], told["error"]["code"]) == (False, "bad_input")
    assert "nothing" in told["error"]["message"]


def test_a_table_is_read_again_as_the_page_says(running, lake):
    given = arguments_of(lake, naming.OPERATE_JOB)
    assert started(lake, naming.OPERATE_JOB, given).process.wait(300) == 0
    report = lake.control.read(naming.report_name(given["--run"])).content
    [table] = report["tables"]
    with running.connect() as connection:
        [rows] = connection.execute("select count(*) from orders").fetchone()
    assert (report["ok"], table["rows"], table["ghosts"]) == (True, rows, 0)


@pytest.mark.parametrize(
    ("keys", "refusal"),
    [
        ([["2000"], ["x"]], "invalid key number 2 of orders"),
        ([["2000"], ["2"], ["2000"], ["3"]], "still has key number 2, key number 3 in"),
        ([["1", "2"]], "invalid key number 1 of orders"),
    ],
)
def test_an_erasure_names_the_keys_that_it_refuses_by_number(running, lake, keys, refusal):
    given = arguments_of(lake, naming.FORGET_JOB)
    lake.control.write(forget_name(given["--order"]), {"keys": keys})
    assert started(lake, naming.FORGET_JOB, given).process.wait(300) == 1
    error = lake.control.read(naming.report_name(given["--run"])).content["error"]
    assert error["code"] == "bad_input" and refusal in error["message"]
    assert lake.control.read(forget_name(given["--order"])) is None


@pytest.mark.parametrize("verb", ["replay", "resume"])
def test_operate_needs_no_source_for_its_other_verbs(lake, verb):
    nowhere = {"--source": "{}", "--login": "none", "--run": verb, "--verb": verb}
    arguments = {**local_arguments(lake, naming.OPERATE_JOB), **nowhere}
    assert started(lake, naming.OPERATE_JOB, arguments).process.wait(300) == 0
    report = lake.control.read(naming.report_name(verb)).content
    assert report["ok"] and len(report["tables"]) == len(lake.plan.tables)


def test_a_deployed_stream_hands_over_to_the_next_deployment(running, lake):
    running.run("pause")
    with running.connect() as connection:
        connection.execute("update orders set note = 'handed' where order_id <= 50")
    first = deployed_stream(lake, "first")
    running.eventually(lambda: handed(running) == 50, 120)
    order(lake, "second")
    assert first.process.wait(120) == 0
    with running.connect() as connection:
        connection.execute("update orders set note = 'handed' where order_id <= 80")
    second = deployed_stream(lake, "second")
    running.eventually(lambda: handed(running) == 80, 120)
    assert resident(second) < SMALLEST_WORKER
    order(lake, None)
    assert second.process.wait(120) == 0
    running.run("resume")
    running.assert_equal()
    running.assert_each_identity_once("orders", "order_id")


def resident(job: RunningJob) -> int:
    """Bytes of memory of the job's Java and of its Python processes."""
    top = psutil.Process(job.process.pid)
    return sum(process.memory_info().rss for process in (top, *top.children(recursive=True)))


def handed(running: RunningLake) -> Any:
    """Rows that have come through."""
    return running.sql("select count(*) from orders_current where note = 'handed'")[0][0]
