"""`make record`: run the scripts against a real PostgreSQL, Debezium and Kafka, and keep all of it.

    python -m tests.recorded.record [--avro] [NAME...]

One lake without a stream serves all scripts; each has its own database, connector and topics. With
`--avro` the events are Avro with the Glue registry, and kept next to those of JSON.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from cdclake.config.resolve import load_plan
from cdclake.debezium.connector import (
    SourceAddress,
    connector_config,
    queue_bytes,
    snapshot_signal,
)
from cdclake.debezium.worker import password_of, salt_of
from cdclake.jobs.runtime.source import write_marker
from cdclake.jobs.stream.schema_registry import GlueSchemas
from cdclake.local.components import connect
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.glue_registry import prepare_registry
from cdclake.local.lake.lake import use_local_aws
from cdclake.local.lake.source import prepare_source, remove_from_source
from cdclake.local.lake.source_credentials import keep_login, keep_salt
from cdclake.local.lake.stack import Endpoints
from cdclake.local.lake.topics import MarkerReader, create_topics
from cdclake.local.process.home import Home
from cdclake.plan import Plan
from cdclake.postgres.ownership import Owner
from cdclake.postgres.prepare import SIGNAL
from cdclake.postgres.quoting import identifier
from tests.recorded import recording, witness
from tests.recorded.recording import EPOCH, FOLDER, SALT
from tests.recorded.script import Directive, Statement, steps
from tests.recorded.topics import read_topics, snapshots_ended

OWNER = Owner("local:recorder", "the recorder")

_WAIT_S = 120.0
_LINGER_S = 0.5  # topics are written side by side: the marker may overtake by a batch


class Recorder:
    """One script at its work."""

    def __init__(self, home: Home, endpoints: Endpoints, name: str, *, avro: bool) -> None:
        assert endpoints.source is not None
        self._home = home
        self._endpoints = endpoints
        self._name, self._avro = name, avro
        self._plan = self._load(f"{name}.yaml")
        server = asdict(endpoints.source)
        with psycopg.connect(make_conninfo(**server), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {identifier(name)}".encode())
        self._dsn = make_conninfo(**{**server, "dbname": name})
        self._topics: set[str] = set()

    def run(self) -> None:
        """Run the script and replace its recording."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            self._connection = connection
            witness.install(connection)
            for step in steps((FOLDER / f"{self._name}.sql").read_text()):
                if isinstance(step, Statement):
                    connection.execute(step.sql.encode())
                else:
                    self._obey(step)
            self._settle()
            records = read_topics(self._endpoints.kafka, sorted(self._topics))
            said = list(witness.testimony(connection, self._plan.tables))
        if self._avro:
            recording.save_avro(self._name, records, GlueSchemas().schema_text)
        else:
            recording.save(self._name, records, said)
        self._connector.remove()
        remove_from_source(self._dsn, self._plan, OWNER)
        sys.stdout.write(f"{self._name}: {len(records)} records, {len(said)} rows witnessed\n")

    def _obey(self, directive: Directive) -> None:
        match directive.word, *directive.arguments:
            case ["stream"]:
                self._prepare(self._plan)
                for table in self._plan.tables:
                    witness.note_rows(self._connection, table)
                    witness.attach(self._connection, table)
                self._start()
            case ["snapshot", kind, table]:
                self._settle()
                self._snapshot(kind, table)
            case ["declare", file]:
                self._settle()
                self._connector.stop()
                self._prepare(self._load(file))
                self._start()
            case _:
                raise ValueError(f"{self._name}.sql: unknown line {directive}")

    def _load(self, file: str) -> Plan:
        plan = load_plan(FOLDER / file)
        return recording.as_avro(plan) if self._avro else plan

    def _prepare(self, plan: Plan) -> None:
        """Everything that the plan's connector needs before it starts."""
        self._plan = plan
        self._topics |= set(plan.topics)
        password = self._home.secret("replication_password")
        prepare_source(self._dsn, plan, embedded=True, owner=OWNER, role_password=password)
        create_topics(self._endpoints.kafka, plan)

    def _start(self) -> None:
        source = self._endpoints.source
        assert source is not None
        secret = keep_login(self._plan, self._home.secret("replication_password"))
        address = SourceAddress(
            host=source.host,
            port=source.port,
            database=self._name,
            user=self._plan.source_object,
            password=password_of(secret),
            sslmode="prefer",
        )
        salt = salt_of(keep_salt(self._plan, SALT))
        config = connector_config(
            self._plan,
            address,
            epoch=EPOCH,
            mask_salt=salt,
            max_queue_bytes=queue_bytes(connect.HEAP_MB * 1024**2),
            registry=prepare_registry(self._plan, self._endpoints),
        )
        self._connector = ConnectorClient(self._endpoints.connect, self._plan)
        self._connector.start(config)
        self._settle()

    def _snapshot(self, kind: str, source: str) -> None:
        table = self._plan.table(source)
        kafka, topic = self._endpoints.kafka, self._plan.notification_topic
        ended = snapshots_ended(kafka, topic)
        witness.note_rows(self._connection, table)
        word, data = snapshot_signal([table], kind=kind)
        self._connection.execute(
            f"INSERT INTO {SIGNAL} (id, type, data) VALUES (%s, %s, %s)".encode(),
            (uuid.uuid4().hex, word, data),
        )
        self._await(lambda: snapshots_ended(kafka, topic) > ended, f"{kind} snapshot of {source}")

    def _settle(self) -> None:
        """Wait until everything up to now is in Kafka: a marker behind it is."""
        markers = MarkerReader(self._endpoints.kafka, self._plan)
        try:
            marker = os.urandom(8).hex()
            write_marker(self._dsn, marker)
            self._await(lambda: markers.find(marker) is not None, "marker")
        finally:
            markers.close()
        time.sleep(_LINGER_S)

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _WAIT_S
        while not condition():
            failure = self._connector.failure()
            assert failure is None, f"{self._name}: the connector failed: {failure}"
            assert time.monotonic() < deadline, f"{self._name}: no {what} in {_WAIT_S:.0f} s"
            time.sleep(0.2)


def main(names: list[str]) -> None:
    """Record the named scripts, or all, on a lake that is gone afterwards."""
    avro = "--avro" in names
    names = [name for name in names if name != "--avro"]
    folder = Path(tempfile.mkdtemp(prefix="cdclake-record-"))
    home = Home(folder / "home")
    try:
        endpoints = stack.bring_up(home, converter="with-glue" if avro else "")
        use_local_aws(endpoints)
        for name in names or recording.names():
            Recorder(home, endpoints, name, avro=avro).run()
    finally:
        stack.purge(home)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
