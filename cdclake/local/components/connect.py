"""Kafka Connect: one distributed worker with the same plugin as deployed on AWS."""

from __future__ import annotations

import base64
import json
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from cdclake.debezium.worker import OWN_PROVIDER, properties, worker_settings
from cdclake.local.components import connect_plugins, jaas
from cdclake.local.components.installed import (
    REGION,
    aws_variables,
    environment,
    jvm,
    shell,
)
from cdclake.local.components.kafka import CLIENT_SETTINGS
from cdclake.local.process.credentials import Login, aws_keys, connect_login
from cdclake.local.process.home import Home, write_atomically
from cdclake.local.process.process_spec import Spec
from cdclake.local.process.supervisor_client import Component

NAME = "connect"
HEAP_MB = 1024
WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
OFFSETS_TOPIC = "_connect_offsets"
_CONVERTER_FILE = "connect-converter"
AUTHENTICATION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
# Ignores a proxy from the environment: the server is on this machine.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class ConnectApi:
    """URL of Connect's REST API and the login of its clients."""

    url: str
    login: Login

    @property
    def headers(self) -> dict[str, str]:
        """Headers of a request."""
        words = f"{self.login.user}:{self.login.password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(words).decode()}"}


def config_file(home: Home) -> Path:
    """Return the path of the worker's configuration, which differs with the plugin's converter."""
    converter = converter_profile(home)
    return home.run / (f"connect-{converter}.properties" if converter else "connect.properties")


def converter_profile(home: Home) -> str:
    """Return the profile of pom.xml whose jars are in the plugin too; empty without Avro."""
    file = home.run / _CONVERTER_FILE
    return file.read_text() if file.is_file() else ""


def choose_converter(home: Home, profile: str) -> None:
    """Choose the profile with the plugin's Avro converter; empty: none."""
    write_atomically(home.run / _CONVERTER_FILE, profile)


def prepare(home: Home, port: int, kafka_port: int, aws_port: int) -> None:
    """Write the configuration and the folder of plugins."""
    jaas.write_rest_login(home)
    connect_plugins.write_plugins(home, converter_profile(home))
    write_atomically(config_file(home), properties(_settings(home, port, kafka_port, aws_port)))


def component(home: Home, port: int) -> Component:
    """Return the component; it is ready when the worker has joined its group.

    Before that the worker does not answer requests about connectors.
    """
    spec = Spec(
        name=NAME,
        argv=(*jvm(home, NAME, f"128m:{HEAP_MB}m", WORKER), str(config_file(home))),
        env=environment(**aws_variables(aws_keys(home)), **connect_plugins.variables(home)),
        shell=shell(),
        cwd=str(home.run),
        port=port,
        log=str(home.log(NAME)),
    )
    api = ConnectApi(f"http://127.0.0.1:{port}", connect_login(home))
    return Component(spec, lambda: answers(api), timeout_s=90.0)


def answers(api: ConnectApi) -> bool:
    """Return True if the worker lists its connectors."""
    request = urllib.request.Request(f"{api.url}/connectors", headers=api.headers)
    with DIRECT.open(request, timeout=2) as response:
        return isinstance(json.load(response), list)


def _settings(home: Home, port: int, kafka_port: int, aws_port: int) -> dict[str, object]:
    aws = {"region": REGION, "endpoint": f"http://127.0.0.1:{aws_port}"}
    internal = {
        f"{what}.storage.{setting}": value
        for what in ("config", "offset", "status")
        for setting, value in {"topic": f"_connect_{what}s", "replication.factor": 1}.items()
    }
    return {
        **worker_settings(OWN_PROVIDER, **aws),
        "bootstrap.servers": f"127.0.0.1:{kafka_port}",
        **{
            f"{client}{setting}": value
            for client in ("", "producer.", "consumer.", "admin.")
            for setting, value in CLIENT_SETTINGS.items()
        },
        "group.id": "cdclake-connect",
        "listeners": f"http://127.0.0.1:{port}",
        "rest.advertised.host.name": "127.0.0.1",
        "rest.extension.classes": AUTHENTICATION,
        "plugin.path": home.run / "plugins",
        "plugin.discovery": connect_plugins.discovery(home),
        **internal,
        "offset.storage.topic": OFFSETS_TOPIC,
        "offset.storage.partitions": 1,
        "status.storage.partitions": 1,
        # A killed worker stays in the group until its session expires; its successor waits.
        "session.timeout.ms": 10000,
        "heartbeat.interval.ms": 3000,
        "scheduled.rebalance.max.delay.ms": 0,
        # MSK Connect may not allow a connector to override client settings, so neither does this.
        "connector.client.config.override.policy": "None",
    }
