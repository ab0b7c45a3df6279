"""Every part killed in the middle of writes, and healed by `up` with nothing lost or doubled."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.local.running import SHOP, RunningLake, ShopWriter, shop_lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with shop_lake_in(tmp_path_factory.mktemp("lake")) as running:
        yield running


def _write_for(lake: RunningLake, seed: int, stop: threading.Event) -> int:
    """Change the tables until the event; return the number of rounds."""
    rounds = 0
    while not stop.is_set():
        try:
            with psycopg.connect(**lake.dsn, autocommit=True) as connection:
                writer = ShopWriter(connection, seed)
                while not stop.is_set():
                    writer.change(transactions=5)
                    rounds += 1
                    time.sleep(0.3)
        except psycopg.OperationalError:
            seed += 1  # the database itself was killed: go on when it is back
            time.sleep(0.5)
    return rounds


@pytest.mark.parametrize(
    ("seed", "component"),
    list(enumerate(["stream", "connect", "kafka", "aws", "postgres"], start=10)),
    ids=lambda value: str(value),
)
def test_a_killed_component_is_healed(lake: RunningLake, seed: int, component: str) -> None:
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=1) as pool:
        writes = pool.submit(_write_for, lake, seed * 100, stop)
        try:
            time.sleep(4)
            lake.kill(component)
            lake.eventually(lambda: _state(lake, component) != "running", seconds=10)
            time.sleep(2)
            lake.run("up", str(SHOP))
            time.sleep(3)
        finally:
            stop.set()
    assert writes.result() > 0
    lake.assert_equal()
    lake.assert_each_identity_once("customers", "customer_id")
    lake.assert_each_identity_once("orders", "order_id")
    lake.assert_each_identity_once("order_items", "order_id", "line_no")


def _state(lake: RunningLake, component: str) -> str:
    parts = lake.run("status")["components"]
    return str(next(part["state"] for part in parts if part["name"] == component))


def test_nothing_is_left_after_the_supervisor_dies(lake: RunningLake) -> None:
    lake.kill("supervisor")
    lake.eventually(lambda: lake.processes() == [], seconds=10)
    lake.run("up", str(SHOP))
    lake.assert_equal()
