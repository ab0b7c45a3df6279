"""Credentials of the local servers: made once, in files that only their owner reads."""

from netrc import netrc
from pathlib import Path
from typing import Any

import boto3
import pytest

from cdclake.errors import InputError
from cdclake.local.components import connect, jaas, kafka
from cdclake.local.components.connect import ConnectApi
from cdclake.local.components.kafka import Broker
from cdclake.local.lake import spark_jobs, stack
from cdclake.local.lake.client_files import write_client_files
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.credentials import Login, aws_keys, connect_login, kafka_login
from cdclake.local.process.home import Home, write_atomically
from cdclake.local.process.process_spec import Desired, Observed, ProcessStatus, Spec
from cdclake.local.process.supervisor_client import Component

OLDER = "superuser_password=one\nreplication_password=two\nmask_salt=three\nhome_id=four\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.create()
    return found


def logins(home: Home) -> list[Login]:
    return [aws_keys(home), kafka_login(home), connect_login(home)]


def test_credentials_are_random_and_kept(home: Home, tmp_path: Path) -> None:
    first = logins(home)
    home.create()
    assert logins(home) == first
    other = Home(tmp_path / "other")
    other.create()
    texts = [login.password for login in (*first, *logins(other))]
    assert len({*texts}) == 6 and min(map(len, texts)) >= 32
    assert aws_keys(other).user != aws_keys(home).user
    assert home.secrets_file.stat().st_mode & 0o077 == 0
    assert first[0].password not in repr(first)


def test_the_home_of_an_earlier_version_gets_credentials(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write_atomically(home.secrets_file, OLDER)
    with pytest.raises(InputError) as caught:
        aws_keys(home)
    assert "cdclake up" in caught.value.remedy
    home.create()
    assert all(login.password for login in logins(home))
    assert home.secrets_file.read_text().startswith(OLDER)


def component(name: str, *argv: str) -> Component:
    return Component(Spec(name, argv), lambda: True)


def test_what_an_earlier_version_runs_is_prepared_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker's settings are in a file, which is written before the broker starts."""
    older = (Spec("postgres", ("old",)), Spec("kafka", ("old",)), Spec("connect", ("same",)))
    monkeypatch.setattr(stack, "_desired", lambda _: Desired(specs=older))
    running = [ProcessStatus(spec.name, 1, "running", None, "") for spec in older]
    wanted = [component("postgres", "new"), component("kafka", "new"), component("connect", "same")]
    assert stack._starting(home, wanted, Observed(components=tuple(running))) == ["kafka"]
    died = Observed(components=tuple(running[:2]))
    assert stack._starting(home, wanted, died) == ["kafka", "connect"]


def test_no_credential_is_in_the_command_of_a_component(home: Home) -> None:
    for spec in (kafka.component(home, 1).spec, connect.component(home, 2).spec):
        assert f"-Djava.security.auth.login.config={jaas.file(home).as_uri()}" in spec.argv
        assert not [login for login in logins(home) if login.password in " ".join(spec.argv)]
    assert not [
        v for v in spark_jobs.KAFKA_OPTIONS.values() if v not in ("SASL_PLAINTEXT", "PLAIN")
    ]


def settings(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_every_listener_and_client_authenticates(home: Home) -> None:
    home.private_data(kafka.NAME)
    (home.data(kafka.NAME) / "meta.properties").touch()
    kafka.prepare(home, 1, 2)
    broker = settings(kafka.config_file(home).read_text())
    assert broker["listeners"] == "CLIENTS://127.0.0.1:1,CONTROLLER://127.0.0.1:2"
    protocols = broker["listener.security.protocol.map"].split(",")
    assert [p.split(":")[1] for p in protocols] == ["SASL_PLAINTEXT", "SASL_PLAINTEXT"]
    connect.prepare(home, 3, 1, 4)
    worker = settings(connect.config_file(home).read_text())
    for client in ("", "producer.", "consumer.", "admin."):
        assert worker[f"{client}security.protocol"] == "SASL_PLAINTEXT"
    assert worker["rest.extension.classes"] == connect.AUTHENTICATION
    for text in (kafka.config_file(home).read_text(), connect.config_file(home).read_text()):
        assert not [login for login in logins(home) if login.password in text]


def endpoints_of(home: Home) -> Endpoints:
    keys = aws_keys(home)
    return Endpoints(
        None, Broker("127.0.0.1:9", kafka_login(home)),
        ConnectApi("http://127.0.0.1:8", connect_login(home)),
        s3="http://127.0.0.1:7", glue="http://127.0.0.1:7", logs="", keys=keys,
        firehose="http://127.0.0.1:6",
    )  # fmt: skip


def test_client_files_are_private_and_complete(home: Home) -> None:
    write_client_files(home, endpoints_of(home))
    files = sorted(home.clients.iterdir())
    assert [file.name for file in files] == [
        "aws.ini", "connect.netrc", "kafka.properties", "librdkafka.conf",
    ]  # fmt: skip
    assert {file.stat().st_mode & 0o077 for file in (home.clients, *files)} == {0}
    login = kafka_login(home)
    librdkafka = settings((home.clients / "librdkafka.conf").read_text())
    assert (librdkafka["sasl.username"], librdkafka["sasl.password"]) == (
        login.user,
        login.password,
    )
    java = settings((home.clients / "kafka.properties").read_text())
    assert java["sasl.jaas.config"].endswith(f'password="{login.password}";')
    found = netrc(str(home.clients / "connect.netrc")).authenticators("127.0.0.1")
    assert found is not None and found[2] == connect_login(home).password


def test_aws_clients_read_their_file(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write_client_files(home, endpoints_of(home))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(home.clients / "aws.ini"))
    session: Any = boto3.Session()
    assert session.get_credentials().secret_key == aws_keys(home).password
    assert session.client("glue").meta.endpoint_url == "http://127.0.0.1:7"
    assert session.client("firehose").meta.endpoint_url == "http://127.0.0.1:6"
