"""Hudi copies on the real local lake: the job, its schedule, the catalog, and hudi-rs over S3."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from cdclake import naming
from cdclake.jobs.control.leases import LEASE_DURATION_S
from cdclake.jobs.erasure.content_search import search_content
from cdclake.jobs.erasure.sought_values import SoughtValue, SoughtValues
from cdclake.jobs.erasure.stored_objects import object_versions
from cdclake.local.forget.local_erasure_backend import LocalErasureBackend
from cdclake.local.lake.lake import aws_environment, open_lake
from cdclake.local.lake.spark_jobs import start_job
from cdclake.local.process.home import Home
from tests.local.erased_lake import erased_of
from tests.local.running import LONGEST_COMMAND_S, SHOP, RunningLake, shop_lake_in
from tests.spark.hudi_jvm import needs_hudi, rust_rows

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1500), needs_hudi]

# Of a key of two columns, and merge-on-read; of one whole number, and copy-on-write.
PUBLISHED = {
    "public.order_items:": "- hudi: {type: mor, name: items_hudi}",
    "public.orders:": "- hudi: {name: orders_hudi, partition_by: status}",
}
COPIES = {"items_hudi": "order_items", "orders_hudi": "orders"}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("lake")
    file, text = folder / "shop.yaml", SHOP.read_text()
    for table, copy in PUBLISHED.items():
        assert table in text
        text = text.replace(table, f"{table}\n    publish:\n      {copy}")
    file.write_text(text)
    with shop_lake_in(folder) as running:
        running.run("up", str(file))
        yield running


def copied(lake: RunningLake, copy: str, columns: list[str]) -> list[tuple[Any, ...]]:
    """The copy's rows, read by hudi-rs from the local S3."""
    opened = open_lake(Home(lake.home))
    options = {
        "aws_allow_http": "true",
        **{name.lower(): value for name, value in aws_environment(opened.endpoints).items()},
    }
    folder = f"{opened.warehouse_uri}/{opened.plan.lake_database}.db/{copy}"
    return sorted(tuple(map(str, row)) for row in rust_rows(folder, columns, options))


def stored(lake: RunningLake, table: str, columns: list[str]) -> list[tuple[Any, ...]]:
    rows = lake.sql(f"SELECT {', '.join(columns)} FROM {table}_current")
    return sorted(tuple(map(str, row)) for row in rows)


READ = {
    "items_hudi": ["order_id", "line_no", "sku", "quantity"],
    "orders_hudi": ["order_id", "customer_id", "status", "note"],
}


def equal(lake: RunningLake) -> bool:
    return all(
        copied(lake, copy, columns) == stored(lake, COPIES[copy], columns)
        for copy, columns in READ.items()
    )


def test_a_job_that_is_killed_while_it_writes_is_repaired_by_the_next(lake: RunningLake) -> None:
    lake.assert_equal()
    opened = open_lake(Home(lake.home))
    bucket, _, warehouse = opened.warehouse_uri.removeprefix("s3://").partition("/")
    timeline = f"{warehouse}/{opened.plan.lake_database}.db/orders_hudi/.hoodie/"

    def began() -> bool:
        found = opened.client("s3").list_objects_v2(Bucket=bucket, Prefix=timeline)
        return any(each["Key"].endswith(".inflight") for each in found.get("Contents", ()))

    running = start_job(opened, naming.PUBLISH_JOB, {"tables": "orders_hudi"})
    try:
        deadline = time.monotonic() + 200
        while not began():
            assert time.monotonic() < deadline and running.process.poll() is None
            time.sleep(0.05)
    finally:
        running.process.kill()
        running.process.wait()
    waits_s = LEASE_DURATION_S + LONGEST_COMMAND_S  # for the lease of the killed job
    assert lake.run_within(waits_s, "job", "publish_hudi", "--table", "orders_hudi")["ok"]
    columns = READ["orders_hudi"]
    assert copied(lake, "orders_hudi", columns) == stored(lake, "orders", columns)


def test_copies_follow_their_tables(lake: RunningLake) -> None:
    lake.assert_equal()
    report = lake.run("job", "publish_hudi")
    errors = {each["table"]: each["error"] for each in report["tables"]}
    assert errors == dict.fromkeys(COPIES)
    assert equal(lake)
    with lake.connect() as connection:
        connection.execute("update orders set status = 'sent', note = 'moved' where order_id < 40")
        connection.execute("delete from orders where order_id between 50 and 60")
        connection.execute("delete from order_items where order_id between 50 and 60")
        connection.execute("update order_items set quantity = 9 where order_id = 1")
    lake.assert_equal()
    report = lake.run("job", "publish_hudi", "--table", "orders_hudi", "--table", "items_hudi")
    written = {each["table"]: each["rows_applied"] for each in report["tables"]}
    assert written == {"orders_hudi": 50, "items_hudi": 24}
    assert equal(lake)
    glue = open_lake(Home(lake.home)).client("glue")
    names = {t["Name"] for t in glue.get_tables(DatabaseName="cdc_iceberg")["TableList"]}
    assert {"orders_hudi", "items_hudi_ro", "items_hudi_rt"} <= names
    lake.run("job", "maintain_tables")
    assert equal(lake), "maintenance leaves the copies' files alone"


def test_without_a_change_the_schedule_starts_no_spark(lake: RunningLake) -> None:
    assert {"publish_hudi-orders_hudi"} <= {j["job"] for j in lake.run("status")["schedules"]}
    run = ("-m", "cdclake.local.scheduled_job", "--home", str(lake.home))
    words = (*run, "--job", "publish_hudi", "--table", "orders_hudi")
    ended = subprocess.run([sys.executable, *words], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert b"orders_hudi: nothing has changed" in ended.stdout


def objects_of(lake: RunningLake, copy: str) -> dict[str, bytes]:
    """The content of every version of every object of the copy."""
    opened = open_lake(Home(lake.home))
    client = opened.client("s3")
    folder = LocalErasureBackend(opened).objects.copy_folder(copy)
    found = {}
    for version in object_versions(client, opened.bucket, folder):
        if not version.is_marker:
            place = {"Bucket": opened.bucket, "Key": version.key, **version.identity}
            found[f"{version.key} {version.version}"] = client.get_object(**place)["Body"].read()
    return found


def test_erased_rows_leave_every_file_of_the_copies(lake: RunningLake) -> None:
    with lake.connect() as connection:
        connection.execute("update orders set note = 'note of Ada Lovelace' where order_id = 70")
        connection.execute("update order_items set sku = 'sku-of-ada' where order_id = 70")
    lake.assert_equal()
    lake.run("job", "publish_hudi")
    sought = SoughtValues([SoughtValue("note", "note of Ada Lovelace")])
    before = objects_of(lake, "orders_hudi")
    assert any(list(search_content(name, content, sought)) for name, content in before.items())
    with lake.connect() as connection:  # the copies have not seen it
        connection.execute("delete from order_items where order_id = 70")
        connection.execute("delete from orders where order_id = 70")
    lake.assert_equal()
    lines = [
        line
        for (line,) in lake.sql(
            "select distinct line_no from order_items_changes where order_id = 70"
        )
    ]
    keys = lake.home.parent / "items.txt"
    keys.write_text("".join(f"70\t{line}\n" for line in lines))
    report = lake.run("forget", "order_items", "--keys", str(keys), "--yes", "--grace", "3s")
    assert (erased_of(report, "Hudi copy"), report["stored"]) == ({"items_hudi": None}, [])
    report = lake.run("forget", "orders", "70", "--yes", "--grace", "3s")
    assert (erased_of(report, "Hudi copy"), report["stored"]) == ({"orders_hudi": None}, [])
    after = objects_of(lake, "orders_hudi")
    assert not any(list(search_content(name, content, sought)) for name, content in after.items())
    assert not any(b"sku-of-ada" in content for content in objects_of(lake, "items_hudi").values())
    assert equal(lake)
    with lake.connect() as connection:
        connection.execute("update orders set note = 'later' where order_id between 80 and 89")
    lake.assert_equal()
    report = lake.run("job", "publish_hudi", "--table", "orders_hudi")
    assert [each["rows_applied"] for each in report["tables"]] == [10]
    assert equal(lake)
