"""Files with the lake's credentials in the formats of common clients, for the lake's owner."""

from __future__ import annotations

from urllib.parse import urlsplit

from cdclake.local.components import jaas
from cdclake.local.components.connect import ConnectApi
from cdclake.local.components.installed import REGION
from cdclake.local.components.kafka import CLIENT_SETTINGS, Broker
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.home import Home, write_atomically


def write_client_files(home: Home, endpoints: Endpoints) -> None:
    """Write the files; only their owner can read them."""
    home.clients.mkdir(mode=0o700, exist_ok=True)
    home.clients.chmod(0o700)
    texts = {
        "aws.ini": _aws(endpoints),
        "kafka.properties": _java(endpoints.kafka),
        "librdkafka.conf": _librdkafka(endpoints.kafka),
        "connect.netrc": _netrc(endpoints.connect),
    }
    for name, text in texts.items():
        write_atomically(home.clients / name, text)


def _aws(endpoints: Endpoints) -> str:
    """Return a file for AWS_CONFIG_FILE and for AWS_SHARED_CREDENTIALS_FILE."""
    return (
        f"[default]\naws_access_key_id = {endpoints.keys.user}\n"
        f"aws_secret_access_key = {endpoints.keys.password}\n"
        f"region = {REGION}\nendpoint_url = {endpoints.s3}\nservices = lake\n"
        f"\n[services lake]\nfirehose =\n  endpoint_url = {endpoints.firehose}\n"
    )


def _java(kafka: Broker) -> str:
    login = jaas.client_module(kafka.login).replace("\n", "")
    settings = {"bootstrap.servers": kafka.address, **CLIENT_SETTINGS}
    return _lines({**settings, "sasl.jaas.config": f"{login};"})


def _librdkafka(kafka: Broker) -> str:
    return _lines({name: str(value) for name, value in kafka.settings.items()})


def _netrc(connect: ConnectApi) -> str:
    host, login = urlsplit(connect.url).hostname, connect.login
    return f"machine {host} login {login.user} password {login.password}\n"


def _lines(settings: dict[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())
