"""The arguments that docs/jobs.md gives each deployed job, given to it on the real local lake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from cdclake import naming
from cdclake.deployed_jobs import TABLE_JOBS
from cdclake.local.lake.lake import LocalLake, open_lake, source_parts
from cdclake.local.lake.spark_jobs import KAFKA_OPTIONS, RunningJob, checkpoint_folder, start_job
from cdclake.local.process.home import Home
from cdclake.stacks.bundles import AUTHORITIES
from tests.local.running import DERIVED, SHOP, RunningLake, shop_lake_in
from tests.spark.hudi_jvm import needs_hudi
from tests.unit.deployed.page import arguments_of_a_run, deployed_arguments

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]
SMALLEST_WORKER = 4 << 30  # Glue's G.025X, whose driver is a worker of its own


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("lake")
    file = folder / "shop.yaml"
    copied = "public.customers:\n    publish: [{hudi: {}}]"
    file.write_text(SHOP.read_text().replace("public.customers:", copied) + DERIVED)
    with shop_lake_in(folder) as running:
        running.run("up", str(file))
        yield running


@pytest.fixture
def lake(running: RunningLake, monkeypatch: pytest.MonkeyPatch) -> LocalLake:
    for name in ("AWS_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)  # what `open_lake` sets is gone afterwards
    return open_lake(Home(running.home))


def started(lake: LocalLake, job: str, arguments: dict[str, str]) -> RunningJob:
    """A run with these arguments; what begins with the local lake's own addresses stays."""
    return start_job(lake, job, {k.removeprefix("--"): v for k, v in arguments.items()})


@pytest.mark.parametrize(
    "job",
    [pytest.param(j, marks=needs_hudi if j == naming.PUBLISH_JOB else ()) for j in TABLE_JOBS],
)
def test_a_job_that_ends_takes_what_the_page_says(running, lake, job):
    given = arguments_of_a_run()[job]
    assert started(lake, job, given).process.wait(300) == 0
    report = lake.control.read(naming.report_name(given["--run"]))
    assert report is not None and report.content["ok"]
    assert [line["table"] for line in report.content["tables"]] == given["--tables"].split(",")


def test_source_and_lake_are_compared_as_the_page_says(running, lake):
    given = arguments_of_a_run()[naming.VERIFY_JOB]
    arguments = {**at_source(lake, naming.VERIFY_JOB), **given}
    assert started(lake, naming.VERIFY_JOB, arguments).process.wait(300) == 0
    report = lake.control.read(naming.report_name(given["--run"]))
    [table] = report.content["tables"]
    assert report.content["ok"] and table["table"] == "orders"
    assert table["source_rows"] == table["lake_rows"] > 0


def test_a_comparison_that_cannot_be_says_why(lake):
    arguments = at_source(lake, naming.VERIFY_JOB)
    nowhere = json.loads(arguments["--source"]) | {"dbname": "nothing"}
    arguments |= {"--source": json.dumps(nowhere), "--run": "nowhere"}
    assert started(lake, naming.VERIFY_JOB, arguments).process.wait(300) == 1
    told = lake.control.read(naming.report_name("nowhere")).content
    assert (told["ok"], told["error"]["code"]) == (False, "bad_input")
    assert "nothing" in told["error"]["message"]


def test_a_table_is_read_again_as_the_page_says(running, lake):
    given = arguments_of_a_run()[naming.OPERATE_JOB]
    arguments = {**at_source(lake, naming.OPERATE_JOB), **given}
    assert started(lake, naming.OPERATE_JOB, arguments).process.wait(300) == 0
    report = lake.control.read(naming.report_name(given["--run"])).content
    [table] = report["tables"]
    with running.connect() as connection:
        [rows] = connection.execute("select count(*) from orders").fetchone()
    assert (report["ok"], table["rows"], table["ghosts"]) == (True, rows, 0)


@pytest.mark.parametrize("verb", ["replay", "resume"])
def test_operate_needs_no_source_for_its_other_verbs(lake, verb):
    nowhere = {"--source": "{}", "--login": "none", "--run": verb, "--verb": verb}
    arguments = {**at_source(lake, naming.OPERATE_JOB), **nowhere}
    assert started(lake, naming.OPERATE_JOB, arguments).process.wait(300) == 0
    report = lake.control.read(naming.report_name(verb)).content
    assert report["ok"] and len(report["tables"]) == len(lake.plan.tables)


def at_source(lake: LocalLake, job: str) -> dict[str, str]:
    """The page's arguments with local addresses; nothing here has a certificate to look at."""
    given = deployed_arguments()[job]
    words = json.loads(given["--source"])
    parts = source_parts(lake.dsn)
    words |= {"host": parts["host"], "port": str(parts["port"]), "dbname": parts["dbname"]}
    authorities = f"s3://{lake.bucket}/deployed/rds-ca.pem"
    lake.client("s3").upload_file(str(AUTHORITIES), lake.bucket, "deployed/rds-ca.pem")
    local = {
        "--plan": lake.plan_uri,
        "--control": lake.control_uri,
        "--metrics": given["--metrics"],
        "--brokers": lake.kafka.address,
        "--kafka_options": json.dumps(KAFKA_OPTIONS),
        "--source": json.dumps(words | {"sslmode": "prefer"}),
        "--login": naming.login_secret(lake.plan.name),
        "--authorities": authorities,
    }
    if job == naming.VERIFY_JOB:
        local["--mask_salt"] = naming.salt_secret(lake.plan.name)
    if job == naming.OPERATE_JOB:
        local["--offsets"] = "_connect_offsets"
    assert local.keys() == given.keys()
    return local


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


def deployed_stream(lake: LocalLake, deployment: str) -> RunningJob:
    """The stream with the page's arguments, but for the local broker's login."""
    order(lake, deployment)
    given = deployed_arguments()[naming.STREAM_JOB]
    options = json.loads(given["--kafka_options"])
    local = {
        "--plan": lake.plan_uri,
        "--control": lake.control_uri,
        "--checkpoint": checkpoint_folder(lake).as_uri(),
        "--brokers": lake.kafka.address,
        "--kafka_options": json.dumps({**KAFKA_OPTIONS, "groupIdPrefix": options["groupIdPrefix"]}),
        "--deployment": deployment,
        "--metrics": given["--metrics"],
    }
    assert local.keys() == given.keys()
    return started(lake, naming.STREAM_JOB, local)


def resident(job: RunningJob) -> int:
    """Bytes of memory of the job's Java and of its Python processes."""
    top = psutil.Process(job.process.pid)
    return sum(process.memory_info().rss for process in (top, *top.children(recursive=True)))


def order(lake: LocalLake, deployment: str | None) -> None:
    """As the keeper does."""
    lake.control.write(naming.STREAM_ORDER, {"deployment": deployment})


def handed(running: RunningLake) -> Any:
    """Rows that have come through."""
    return running.sql("select count(*) from orders_current where note = 'handed'")[0][0]
