"""A Kafka broker for a measurement, as the local lake runs it; not a child of who is measured."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.storage import free_port
from cdclake.local.components import jaas, kafka
from cdclake.local.process.credentials import kafka_login
from cdclake.local.process.home import Home

_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RunningBroker:
    """A broker that answers."""

    broker: kafka.Broker

    @property
    def spark_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source and sink."""
        login = jaas.client_module(self.broker.login).replace("\n", "")
        settings = {**kafka.CLIENT_SETTINGS, "bootstrap.servers": self.broker.address}
        named = {f"kafka.{name}": value for name, value in settings.items()}
        return {**named, "kafka.sasl.jaas.config": f"{login};"}

    def create(self, topics: Sequence[str], partitions: int = 1) -> None:
        """Create topics with this number of partitions each."""
        admin = AdminClient(self.broker.settings)
        new = [NewTopic(topic, partitions) for topic in topics]
        for created in admin.create_topics(new).values():
            created.result(timeout=30)


@contextmanager
def running_broker(folder: Path) -> Iterator[RunningBroker]:
    """Run a broker with its data in an empty folder; it has ended when the block ends."""
    home = Home(folder)
    home.create()
    jaas.write(home)
    port = free_port()
    kafka.prepare(home, port, free_port())
    component = kafka.component(home, port)
    spec = component.spec
    with Path(spec.log).open("wb") as log:
        server = subprocess.Popen(
            spec.argv,
            cwd=spec.cwd,
            env={**os.environ, **spec.shell, **spec.env},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(component.ready)
        yield RunningBroker(kafka.Broker(f"127.0.0.1:{port}", kafka_login(home)))
    finally:
        server.terminate()
        server.wait()


def _wait_for(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            if ready():
                return
        except KafkaException:
            if time.monotonic() > deadline:
                raise
        if time.monotonic() > deadline:
            raise TimeoutError(f"the broker was not ready within {_START_SECONDS} s")
        time.sleep(0.2)
