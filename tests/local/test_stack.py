"""The four components, killed one by one and healed, with what was in them."""

import json
import os
import signal
import socket
import struct
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import boto3
import psutil
import psycopg
import pytest
from botocore.exceptions import ClientError
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from cdclake.local.components.connect import DIRECT, ConnectApi
from cdclake.local.lake import stack
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.credentials import Login
from cdclake.local.process.home import Home, read_json
from cdclake.local.process.orphan_processes import component_in

pytestmark = pytest.mark.local

JSON_CODES = {
    "InvalidAccessKeyId": "UnrecognizedClientException",
    "SignatureDoesNotMatch": "InvalidSignatureException",
}
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
    admin = AdminClient(at.kafka.settings)
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result()
    producer = Producer(at.kafka.settings)
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
        aws_access_key_id=at.keys.user,
        aws_secret_access_key=at.keys.password,
    )


def assert_all_is_there(at: Endpoints) -> None:
    with source(at) as db:
        assert db.execute("select id from t").fetchall() == [(1,)]
    consumer = Consumer({**at.kafka.settings, "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, 0)])
    try:
        message = consumer.poll(30)
        assert message is not None and message.value() == b"one"
    finally:
        consumer.close()
    assert aws("s3", at).get_object(Bucket="lake", Key="k")["Body"].read() == b"one"
    assert aws("glue", at).get_database(Name="shop")["Database"]["Name"] == "shop"
    url = f"{at.connect.url}/connector-plugins"
    request = urllib.request.Request(url, headers=at.connect.headers)
    with DIRECT.open(request, timeout=5) as response:
        plugins = [plugin["class"] for plugin in json.load(response)]
    assert "cdclake.connect.LsnGroupConnector" in plugins


def parts(home: Home) -> dict[str, dict[str, Any]]:
    return {part["name"]: part for part in stack.components(home)}


def wait_until(what: str, seconds: float, condition: Any) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def processes_of_home(home: Home) -> list[psutil.Process]:
    """The processes that the supervisor started, and itself."""
    pids = [part["pid"] for part in parts(home).values()]
    return [psutil.Process(pid) for pid in pids if pid is not None]


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


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        (Login("local", "local"), "InvalidAccessKeyId"),
        (None, "SignatureDoesNotMatch"),  # the lake's key id, which is no secret, with another key
    ],
)
def test_aws_refuses_other_keys(written: Endpoints, keys: Login | None, code: str) -> None:
    keys = keys or Login(written.keys.user, "guessed")
    for service, call in (("s3", "list_buckets"), ("secretsmanager", "list_secrets")):
        with pytest.raises(ClientError) as caught:
            getattr(aws(service, replace(written, keys=keys)), call)()
        wanted = code if service == "s3" else JSON_CODES[code]
        assert caught.value.response["Error"]["Code"] == wanted
    with pytest.raises(HTTPError) as refused:
        DIRECT.open(f"{written.s3}/lake/k", timeout=5)
    assert refused.value.code == 403


@pytest.mark.parametrize(
    "settings",
    [{"security.protocol": "PLAINTEXT", "sasl.mechanism": ""}, {"sasl.password": "guessed"}],
    ids=["no login", "another password"],
)
def test_kafka_refuses_other_logins(written: Endpoints, settings: dict[str, Any]) -> None:
    known = {name: value for name, value in written.kafka.settings.items() if name not in settings}
    other = {name: value for name, value in settings.items() if value}
    admin = AdminClient({**known, **other})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1.5)
    assert "t" in AdminClient(written.kafka.settings).list_topics(timeout=5).topics


@pytest.mark.parametrize("listener", ["kafka", "kafka-controller"])
def test_kafka_hangs_up_on_a_client_without_login(
    home: Home, written: Endpoints, listener: str
) -> None:
    """The controller takes requests of clients too, so librdkafka's refusal is not enough."""
    describe_cluster = struct.pack(">hhih", 60, 0, 7, -1) + b"\0" + b"\0\0"
    with socket.create_connection(("127.0.0.1", read_json(home.ports_file)[listener]), 5) as client:
        client.sendall(struct.pack(">i", len(describe_cluster)) + describe_cluster)
        assert client.recv(4) == b""


@pytest.mark.parametrize("password", [None, "guessed"])
def test_connect_refuses_other_logins(written: Endpoints, password: str | None) -> None:
    url = f"{written.connect.url}/connectors"
    login = Login(written.connect.login.user, password or "")
    headers = ConnectApi(url, login).headers if password else {}
    with pytest.raises(HTTPError) as caught:
        DIRECT.open(urllib.request.Request(url, headers=headers), timeout=5)
    assert caught.value.code == 401


def test_no_credential_is_in_a_command_or_a_log(home: Home, written: Endpoints) -> None:
    logins = (written.keys, written.kafka.login, written.connect.login)
    commands = [process.cmdline() for process in processes_of_home(home)]
    logs = [log.read_text(errors="replace") for log in home.logs.glob("*.log")]
    assert len(commands) > len(PARTS) and logs
    for text in (*map(str, commands), *logs):
        assert not [login for login in logins if login.password in text]
    files = [file for file in home.run.iterdir() if file.is_file() and file.suffix != ".lock"]
    assert {oct(file.stat().st_mode & 0o077) for file in files} == {"0o0"}


def test_up_again_changes_nothing(home: Home, written: Endpoints) -> None:
    before = parts(home)
    assert stack.bring_up(home) == written
    assert parts(home) == before


@pytest.mark.parametrize(
    "name",  # Kafka, which takes longest, is left to `make prove`
    ["postgres", "aws", pytest.param("kafka", marks=pytest.mark.slow), "connect"],
)
@pytest.mark.slow
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


@pytest.mark.slow  # by default tests/unit/local/test_supervisor.py, with other programs
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
        urllib.request.urlopen(written.connect.url, timeout=2)
