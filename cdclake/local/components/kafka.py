"""Kafka: one node that is both broker and controller, without ZooKeeper."""

from __future__ import annotations

import base64
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cdclake.debezium.record_limit import MAX_RECORD_BYTES
from cdclake.debezium.worker import properties
from cdclake.errors import ComponentFailed
from cdclake.local.components.installed import environment, jvm, shell
from cdclake.local.process.credentials import Login, kafka_login
from cdclake.local.process.home import Home, write_atomically
from cdclake.local.process.process_spec import Spec
from cdclake.local.process.supervisor_client import Component

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

NAME = "kafka"
# How every client authenticates; the password is not among them.
CLIENT_SETTINGS = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}


@dataclass(frozen=True, slots=True)
class Broker:
    """Address of the broker and the login of its clients."""

    address: str
    login: Login

    @property
    def settings(self) -> dict[str, str | int | float | bool]:
        """Settings of a client of confluent-kafka."""
        return {
            "bootstrap.servers": self.address,
            **CLIENT_SETTINGS,
            "sasl.username": self.login.user,
            "sasl.password": self.login.password,
            "log_level": 0,
        }


def config_file(home: Home) -> Path:
    """Return the path of the broker's configuration."""
    return home.run / "kafka.properties"


def prepare(home: Home, port: int, controller_port: int) -> None:
    """Write the configuration, and format the log folder at the first start."""
    home.private_data(NAME)
    write_atomically(config_file(home), properties(_settings(home, port, controller_port)))
    if not (home.data(NAME) / "meta.properties").exists():
        _format(home)


def component(home: Home, port: int) -> Component:
    """Return the component; it is ready when the cluster's metadata lists the broker."""
    spec = Spec(
        name=NAME,
        argv=(*jvm(home, NAME, "128m:512m", "kafka.Kafka"), str(config_file(home))),
        env=environment(),
        shell=shell(),
        cwd=str(home.data(NAME)),
        port=port,
        log=str(home.log(NAME)),
    )
    broker = Broker(f"127.0.0.1:{port}", kafka_login(home))
    admin: list[AdminClient] = []  # one client for all polls, created by the first

    def ready() -> bool:
        # Only here: the state of a lake is also read without the packages of `cdclake[local]`.
        from confluent_kafka.admin import AdminClient

        if not admin:
            admin.append(AdminClient(broker.settings))
        return bool(admin[0].list_topics(timeout=1).brokers)

    return Component(spec, ready)


def cluster_id() -> str:
    """Return a random cluster id without a leading dash, which Kafka's tool reads as an option."""
    while True:
        found = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not found.startswith("-"):
            return found


def _settings(home: Home, port: int, controller_port: int) -> dict[str, object]:
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CLIENTS://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"CLIENTS://127.0.0.1:{port}",
        # A controller takes requests of clients too. The logins are in the JAAS file.
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "CLIENTS",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "log.dirs": home.data(NAME),
        # An undeclared topic is a mistake, and would be created with the wrong settings.
        "auto.create.topics.enable": "false",
        "num.partitions": 1,
        "default.replication.factor": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        "log.retention.hours": 168,
        # A stream that was stopped for a week must still find its offsets.
        "offsets.retention.minutes": 10080 * 4,
        "message.max.bytes": MAX_RECORD_BYTES,
        "replica.fetch.max.bytes": MAX_RECORD_BYTES,
        # A broker cannot register before the session of its killed predecessor has expired.
        "broker.session.timeout.ms": 6000,
        "broker.heartbeat.interval.ms": 1000,
        "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,
        "num.network.threads": 2,
        "num.io.threads": 4,
    }


def _format(home: Home) -> None:
    """Format the log folder with Kafka's tool, which writes meta.properties as its last step."""
    done = subprocess.run(
        [
            *jvm(home, NAME, "32m:128m", "kafka.tools.StorageTool"),
            *("format", f"--cluster-id={cluster_id()}", "-c", str(config_file(home))),
            "--ignore-formatted",
        ],
        env={**shell(), **environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ComponentFailed(
            f"Kafka could not format {home.data(NAME)} (exit {done.returncode})",
            "see its output below; free disk space or set CDCLAKE_HOME to another folder",
            component=NAME,
            log_tail=(done.stdout + done.stderr)[-4000:],
        )
