"""The bulk first load on the real lake: under writes, killed in the middle, and type by type."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cdclake.local.process.orphan_processes import component_in
from tests.local.running import PROJECT, SHOP, SHOP_SQL, Business, RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

MORE_ORDERS = """
insert into orders select i, i % 500, 'new', i * 1.25, '{}', case when i % 100 = 0 then
    (select string_agg(md5(random()::text), '') from generate_series(1, 200)) end
  from generate_series(100001, 300000) i
"""
KEYS = {
    "customers": ["customer_id"],
    "orders": ["order_id"],
    "order_items": ["order_id", "line_no"],
}


def bulk(pipeline: Path, folder: Path) -> Path:
    """The pipeline file with a bulk snapshot here, and the connector's own in each environment."""
    text = pipeline.read_text()
    text = re.sub(r"(?m)^(  database: .*)$", r"\1\n  snapshot: {mode: bulk}", text, count=1)
    text = re.sub(r"(?m)^    aws:$", "    source: {snapshot: {mode: initial}}\n    aws:", text)
    path = folder / "bulk.yaml"
    path.write_text(text)
    return path


def assert_each_identity_once(lake: RunningLake) -> None:
    """Over everything in the logs, what the load read included."""
    for table, key in KEYS.items():
        identity = ", ".join(["cdc_epoch", "cdc_phase", "cdc_lsn", "cdc_op", *key])
        counted = f"select {identity}, count(*) from {table}_changes group by all"
        assert lake.sql(f"{counted} having count(*) > 1") == []


def read_by(lake: RunningLake, table: str) -> list[list[Any]]:
    """Epochs and partitions that the log's snapshot rows are of."""
    return lake.sql(
        f"select distinct cdc_epoch, cdc_partition from {table}_changes where cdc_op = 'r'"
    )


def test_a_load_under_writes_is_exact(tmp_path: Path) -> None:
    with lake_in(tmp_path) as lake:
        with lake.connect() as connection:
            connection.execute(SHOP_SQL)
            connection.execute(MORE_ORDERS)
        with Business(lake, seed=1, pause_s=0.02):
            lake.run("up", str(bulk(SHOP, tmp_path)))
        tables = lake.assert_equal()
        assert tables["orders"]["source_rows"] > 200_000
        for table in KEYS:
            assert read_by(lake, table) == [[1, -2]]
        assert_each_identity_once(lake)
        written = load_log(lake)
        secrets = (lake.home / "secrets.properties").read_text().splitlines()
        assert len(secrets) > 2
        assert not [line for line in secrets if line.partition("=")[2] in written]
        with Business(lake, seed=2, pause_s=0.02):
            assert lake.run("job", "rebuild_tables")["ok"]
        lake.assert_equal()
        lake.run("down")
        lake.run("up")
        lake.assert_equal()
        assert lake.run("status")["epoch"] == 1


def loader(lake: RunningLake) -> list[int]:
    """Processes of the running load."""
    return [
        process.pid
        for process in lake.processes()
        if component_in(process.environ(), lake.home) == "load_tables"
    ]


def start_up(lake: RunningLake, file: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "cdclake.cli.main", "up", str(file), "--json"],
        cwd=PROJECT,
        env={**os.environ, "CDCLAKE_HOME": str(lake.home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def load_log(lake: RunningLake) -> str:
    """What the load has said."""
    log = lake.home / "logs" / "load_tables.log"
    return log.read_text() if log.exists() else ""


def test_a_load_that_was_killed_begins_again_under_the_next_epoch(tmp_path: Path) -> None:
    with lake_in(tmp_path) as lake:
        with lake.connect() as connection:
            connection.execute(SHOP_SQL)
            connection.execute(MORE_ORDERS)
        file = bulk(SHOP, tmp_path)
        with Business(lake, seed=3, pause_s=0.02):
            starting = start_up(lake, file)
            lake.eventually(lambda: " Loaded(" in load_log(lake), seconds=300)  # and orders not yet
            for pid in loader(lake):
                os.kill(pid, 9)
            said, _ = starting.communicate()
            assert starting.returncode == 4, said
            assert "orders: Loaded(" not in load_log(lake)
            error = json.loads(said)["error"]
            assert (error["component"], error["code"]) == ("load_tables", "component_failed")
            assert {table["state"] for table in lake.run("status")["tables"]} == {"loading"}
            assert lake.run("resume", expect=3)["error"]["remedy"] == "run `cdclake up`"
            with psycopg.connect(**lake.dsn, autocommit=True) as connection:
                connection.execute("delete from orders where order_id between 100001 and 100500")
            lake.run("up", str(file))
        lake.assert_equal()
        assert lake.run("status")["epoch"] == 2
        assert_each_identity_once(lake)
