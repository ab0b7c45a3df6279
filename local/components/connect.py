"""Kafka Connect, one distributed worker with Debezium as its only plugin."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from local.components.installed import environment, jar_folder, jvm, properties
from local.components.kafka import LARGEST_MESSAGE
from local.home import Home, write_atomically
from local.keeper import Component
from local.process import Spec

NAME = "connect"
WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
# Never through a proxy that the shell may name: it is this machine.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def config_file(home: Home) -> Path:
    return home.run / "connect.properties"


def prepare(home: Home, port: int, kafka_port: int) -> None:
    """Its configuration, and a plugin folder that holds a link to Debezium's jars."""
    link = home.run / "plugins" / "debezium"
    link.parent.mkdir(mode=0o700, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(jar_folder("debezium"))
    write_atomically(config_file(home), properties(_settings(home, port, kafka_port)))


def component(home: Home, port: int) -> Component:
    """Ready when the worker has joined its group: only then it answers for its connectors."""
    spec = Spec(
        name=NAME,
        argv=(*jvm(home, NAME, "128m:1g", WORKER), str(config_file(home))),
        env=environment(),
        cwd=str(home.run),
        port=port,
        log=str(home.log(NAME)),
    )
    return Component(spec, lambda: answers(port), timeout_s=90.0)


def answers(port: int) -> bool:
    with DIRECT.open(f"http://127.0.0.1:{port}/connectors", timeout=2) as response:
        return isinstance(json.load(response), list)


def _settings(home: Home, port: int, kafka_port: int) -> dict[str, object]:
    json_converter = "org.apache.kafka.connect.json.JsonConverter"
    files = "org.apache.kafka.common.config.provider.FileConfigProvider"
    internal = {
        f"{what}.storage.{setting}": value
        for what in ("config", "offset", "status")
        for setting, value in {"topic": f"_connect_{what}s", "replication.factor": 1}.items()
    }
    return {
        "bootstrap.servers": f"127.0.0.1:{kafka_port}",
        "group.id": "cdclake-connect",
        "listeners": f"http://127.0.0.1:{port}",
        "rest.advertised.host.name": "127.0.0.1",
        "plugin.path": home.run / "plugins",
        # Debezium lists its classes, so its jars need not be searched.
        "plugin.discovery": "service_load",
        "key.converter": json_converter,
        "value.converter": json_converter,
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        **internal,
        "offset.storage.partitions": 1,
        "status.storage.partitions": 1,
        # The slot's confirmed position follows the flushed offsets, and tells us what Kafka has.
        "offset.flush.interval.ms": 1000,
        # A killed worker holds its place in the group for a session; its successor waits for it.
        "session.timeout.ms": 10000,
        "heartbeat.interval.ms": 3000,
        "scheduled.rebalance.max.delay.ms": 0,
        "connector.client.config.override.policy": "All",
        "producer.max.request.size": LARGEST_MESSAGE,
        "producer.compression.type": "lz4",
        # Connector configurations name secrets as ${file:<home>/secrets.properties:<key>}. Before
        # Kafka 3.8 the provider cannot be held to one folder; the port is this machine's alone.
        "config.providers": "file",
        "config.providers.file.class": files,
    }
