"""A connector that stops anywhere, or is taken away and made again, as a deployment does on AWS."""

import json
import urllib.request
from typing import Any

import pytest

from cdclake.local.components.connect import DIRECT
from cdclake.local.lake.topics import end_offsets
from tests.local.running import SHOP, RunningLake, ShopWriter, shop_lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

NAME = "shop-source"
TOPIC = "shop.public.customers"
STOPS, CHANGED = 8, 3000
READ_BY_SNAPSHOTS = "select count(*) from customers_changes where cdc_op = 'r'"


@pytest.fixture
def lake(tmp_path):
    with shop_lake_in(tmp_path) as running:
        yield running


def connect(lake: RunningLake, method: str, path: str, body: Any = None) -> Any:
    """What Connect answers."""
    api = lake.endpoints.connect
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **api.headers}
    request = urllib.request.Request(f"{api.url}{path}", data, headers, method=method)
    with DIRECT.open(request, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def change(lake: RunningLake, seed: int, marker: int) -> None:
    """Changes of every kind, the last of which is a customer of this id."""
    with lake.connect() as connection:
        ShopWriter(connection, seed).change(transactions=20)
        connection.execute(f"insert into customers values ({marker}, 'marker', null, null)")


def await_customer(lake: RunningLake, marker: int) -> None:
    query = f"select count(*) from customers_current where customer_id = {marker}"
    lake.eventually(lambda: lake.sql(query) == [[1]], seconds=120)


def test_under_its_name_it_goes_on_and_under_another_it_reads_everything_again(lake) -> None:
    lake.assert_equal()
    config = connect(lake, "GET", f"/connectors/{NAME}/config")
    assert lake.sql(READ_BY_SNAPSHOTS) == [[500]]

    connect(lake, "DELETE", f"/connectors/{NAME}")
    change(lake, seed=1, marker=7_000_001)  # while there is none, the slot keeps what is written
    connect(lake, "PUT", f"/connectors/{NAME}/config", config)
    await_customer(lake, 7_000_001)
    lake.assert_equal()
    for table, key in (("customers", "customer_id"), ("orders", "order_id")):
        lake.assert_each_identity_once(table, key)
    assert lake.sql(READ_BY_SNAPSHOTS) == [[500]]

    connect(lake, "DELETE", f"/connectors/{NAME}")
    with lake.connect() as connection:
        [live] = connection.execute("select count(*) from customers").fetchone() or [0]
    renamed = {**config, "name": "shop-source-0a1b2c"}
    connect(lake, "PUT", "/connectors/shop-source-0a1b2c/config", renamed)
    lake.eventually(lambda: lake.sql(READ_BY_SNAPSHOTS) == [[500 + live]], seconds=120)


def is_running(lake: RunningLake) -> bool:
    status = connect(lake, "GET", f"/connectors/{NAME}/status")
    return [task["state"] for task in status["tasks"]] == ["RUNNING"]


def sent(lake: RunningLake) -> int:
    """Records of customers in Kafka."""
    return sum(end_offsets(lake.endpoints.kafka, [TOPIC])[TOPIC].values())


def change_keys(lake: RunningLake, turn: int) -> None:
    """Change keys that nothing else changes, and return while the connector sends the records."""
    first = 10_000 * turn
    with lake.connect() as connection:
        connection.execute(
            "insert into customers select i, 'name', null, null"
            f" from generate_series({first}, {first + CHANGED - 1}) i"
        )
        begun = sent(lake)
        connection.execute(
            "update customers set customer_id = customer_id + 1000000"
            f" where customer_id between {first} and {first + CHANGED - 1}"
        )
    # Each of them is inserted, and is then a delete, a tombstone and a create.
    lake.eventually(lambda: sent(lake) > begun + CHANGED, seconds=60)


def test_a_stop_between_the_records_of_a_changed_key_loses_none(lake) -> None:
    """Debezium's own offsets lose a row at about half of these stops (decision 75)."""
    config = connect(lake, "GET", f"/connectors/{NAME}/config")
    # A poll ends after two records, so a stop often falls between delete and create.
    connect(lake, "PUT", f"/connectors/{NAME}/config", {**config, "max.batch.size": "2"})
    for turn in range(1, STOPS + 1):
        lake.eventually(lambda: is_running(lake), seconds=60)
        change_keys(lake, turn)
        connect(lake, "POST", f"/connectors/{NAME}/restart?includeTasks=true")
    lake.eventually(lambda: is_running(lake), seconds=60)
    change_keys(lake, STOPS + 1)
    lake.kill("connect")
    lake.run("up", str(SHOP))
    lake.assert_equal("--wait", "300")
    lake.assert_each_identity_once("customers", "customer_id")
