"""The four components, killed one by one and healed, with what was in them."""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import psutil
import psycopg
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from cdclake.local.components.connect import DIRECT
from cdclake.local.lake import stack
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.home import Home
from cdclake.local.process.orphan_processes import component_in

pytestmark = pytest.mark.local

PARTS = ("postgres", "aws", "kafka", "connect")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDCLAKE_HOME", str(tmp_path_factory.mktemp("lake") / "home"))
        found = Home.from_environment()
        yield found
        stack.purge(found)


@pytest.fixture(scope="module")
def written(home: Home) -> Endpoints:
    """A lake with one thing in each of its parts."""
    at = stack.bring_up(home)
    with source(at) as db:
        db.execute("create table t (id int primary key)")
        db.execute("insert into t values (1)")
    admin = AdminClient({"bootstrap.servers": at.kafka})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result()
    producer = Producer({"bootstrap.servers": at.kafka})
    producer.produce("t", b"one")
    producer.flush()
    aws("s3", at).create_bucket(Bucket="lake")
    aws("s3", at).put_object(Bucket="lake", Key="k", Body=b"one")
    aws("glue", at).create_database(DatabaseInput={"Name": "shop"})
    return at


def source(at: Endpoints) -> "psycopg.Connection[tuple[Any, ...]]":
    assert at.source is not None
    return psycopg.connect(
        host=at.source.host,
        port=at.source.port,
        user=at.source.user,
        password=at.source.password,
        dbname=at.source.dbname,
        autocommit=True,
    )


def aws(service: str, at: Endpoints) -> Any:
    client: Any = boto3.client
    return client(
        service,
        endpoint_url=at.s3,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="key",
    )


def assert_all_is_there(at: Endpoints) -> None:
    with source(at) as db:
        assert db.execute("select id from t").fetchall() == [(1,)]
    consumer = Consumer({"bootstrap.servers": at.kafka, "group.id": "g", "log_level": 0})
    consumer.assign([TopicPartition("t", 0, 0)])
    try:
        message = consumer.poll(30)
        assert message is not None and message.value() == b"one"
    finally:
        consumer.close()
    assert aws("s3", at).get_object(Bucket="lake", Key="k")["Body"].read() == b"one"
    assert aws("glue", at).get_database(Name="shop")["Database"]["Name"] == "shop"
    with DIRECT.open(f"{at.connect}/connector-plugins", timeout=5) as response:
        plugins = [plugin["class"] for plugin in json.load(response)]
    assert "io.debezium.connector.postgresql.PostgresConnector" in plugins


def parts(home: Home) -> dict[str, dict[str, Any]]:
    return {part["name"]: part for part in stack.components(home)}


def wait_until(what: str, seconds: float, condition: Any) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def processes_of(home: Home) -> list[str]:
    """Everything of this lake that still runs, database backends included."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = component_in(process.environ(), home.path)
            backend = process.name() == "postgres" and str(home.path) in process.cwd()
            if process.status() != psutil.STATUS_ZOMBIE and (ours or backend):
                found.append(f"{process.pid} {ours} {process.name()}")
        except psutil.Error:
            continue
    return found


def test_everything_runs(home: Home, written: Endpoints) -> None:
    assert list(parts(home)) == ["supervisor", *PARTS]
    assert {part["state"] for part in parts(home).values()} == {"running"}
    assert_all_is_there(written)


def test_up_again_changes_nothing(home: Home, written: Endpoints) -> None:
    before = parts(home)
    assert stack.bring_up(home) == written
    assert parts(home) == before


@pytest.mark.parametrize("name", PARTS)
def test_a_killed_part_is_seen_and_healed(home: Home, written: Endpoints, name: str) -> None:
    before = parts(home)
    os.kill(before[name]["pid"], signal.SIGKILL)
    wait_until(f"{name} is seen dead", 10, lambda: parts(home)[name]["state"] == "dead")
    assert parts(home)[name]["pid"] is None
    assert stack.bring_up(home) == written
    after = parts(home)
    others = {other: after[other]["pid"] for other in after if other != name}
    assert others == {other: before[other]["pid"] for other in before if other != name}
    assert after[name]["pid"] not in (None, before[name]["pid"])
    assert_all_is_there(written)


def test_everything_dies_with_the_supervisor(home: Home, written: Endpoints) -> None:
    with source(written):  # a session, so that there is a backend to end
        os.kill(parts(home)["supervisor"]["pid"], signal.SIGKILL)
        wait_until("nothing is left", 10, lambda: not processes_of(home))
    states = {name: part["state"] for name, part in parts(home).items()}
    assert states == dict.fromkeys(("supervisor", *PARTS), "dead")
    assert stack.bring_up(home) == written
    assert_all_is_there(written)


def test_down_leaves_nothing_but_the_data(home: Home, written: Endpoints) -> None:
    assert stack.shut_down(home) is True
    assert processes_of(home) == []
    assert parts(home) == {}
    assert stack.shut_down(home) is False
    again = stack.bring_up(home)
    assert_all_is_there(again)


def test_without_the_embedded_database(home: Home, written: Endpoints) -> None:
    at = stack.bring_up(home, embedded_postgres=False)
    assert at.source is None
    assert "postgres" not in parts(home)


def test_purge_forgets(home: Home, written: Endpoints) -> None:
    stack.purge(home)
    assert not Path(home.path).exists()
    assert processes_of(home) == []
    with pytest.raises(OSError):
        urllib.request.urlopen(written.connect, timeout=2)
