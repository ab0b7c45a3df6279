"""Incremental snapshots over more rows than one chunk, for the types that a key may have.

The connector reads a chunk of rows in the order of the key, and the next from the last key on:
each type's values must survive that trip from a result to a parameter of the next statement.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.request import Request

import pytest
from psycopg.conninfo import make_conninfo

from cdclake.jobs.runtime.source import signal_snapshot
from cdclake.local.components.connect import DIRECT
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.lake import LocalLake, open_lake
from cdclake.local.lake.topics import read_messages
from cdclake.local.process.home import Home
from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1500)]

CHUNK_ROWS, ROWS = "50", 230
_STAMP = "timestamptz '2020-01-01 00:00:00+00' + i * interval '1 hour 1.000001 s'"
_LABEL = "md5(i::text)"
# By table: the key's columns with their types in the source, and an expression of i for each.
KEYS: dict[str, list[tuple[str, str]]] = {
    "boolean": [("boolean", "i % 2 = 0"), ("integer", "i")],
    "real": [("real", "i * 1.1")],
    "numeric": [("numeric(12,2)", "i * 1.25 - 99")],
    "numeric_free": [("numeric", "i * 123456789012345678901234567890.123")],
    "money": [("money", "(i - 100)::numeric::money * 1.01")],
    "date": [("date", "date '2019-11-01' + i")],
    "timestamp": [("timestamp", f"({_STAMP}) at time zone 'UTC'")],
    "timestamptz": [("timestamptz", _STAMP)],
    "time": [("time", "time '00:00' + i * interval '61.000001 s'")],
    "interval": [("interval", "make_interval(months => i % 7, secs => i)")],
    "bytea": [("bytea", f"decode({_LABEL}, 'hex')")],
    "uuid": [("uuid", f"{_LABEL}::uuid")],
    "enum": [("mood", "'mood' || i")],
    "text_collated": [('text collate "en-x-icu"', "chr(65 + i % 2 * 32 + i % 26) || i")],
    "char": [("char(40)", _LABEL)],
    "citext": [("citext", "chr(65 + i % 2 * 32 + i % 26) || i")],
    "inet": [("inet", "inet '10.0.0.1' + i * 77")],
    "bit": [("bit(16)", "i::bit(16)")],
    "domain": [("stamp", _STAMP)],
    "mixed": [("mood", "'mood' || i % 3"), ("timestamptz", _STAMP), ("uuid", f"{_LABEL}::uuid")],
    "mixed_dates": [("date", "date '2020-01-01' + i % 3"), ("inet", "inet '10.0.0.1' + i")],
}  # fmt: skip


def _ddl(table: str, key: list[tuple[str, str]]) -> str:
    columns = ", ".join(f"k{n} {kind} not null" for n, (kind, _) in enumerate(key))
    names = ", ".join(f"k{n}" for n in range(len(key)))
    values = ", ".join(f"({value})::{kind.split(' collate')[0]}" for kind, value in key)
    return (
        f"create table k_{table} ({columns}, v text, primary key ({names}));"
        f"insert into k_{table} select {values}, 'v' || i from generate_series(1, {ROWS}) i;"
    )


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("keys")
    file = folder / "keys.yaml"
    with lake_in(folder) as running:
        labels = ", ".join(f"'mood{i}'" for i in range(ROWS + 1))
        with running.connect() as connection:
            connection.execute("create extension citext")
            connection.execute(f"create type mood as enum ({labels})".encode())
            connection.execute("create domain stamp as timestamptz")
            for table, key in KEYS.items():
                connection.execute(_ddl(table, key).encode())
        dsn = make_conninfo(**running.dsn)
        running.run("init", "--from-db", dsn, "--schema", "public", "-o", str(file))
        running.run("up", str(file))
        yield running


def test_every_type_of_key_is_read_in_chunks(lake: RunningLake) -> None:
    there = open_lake(Home(lake.home))
    connect = there.endpoints.connect
    client = ConnectorClient(connect, there.plan)
    with DIRECT.open(Request(f"{client._url}/config", headers=connect.headers)) as answer:
        config = json.load(answer)
    client.start({**config, "incremental.snapshot.chunk.size": CHUNK_ROWS})
    first = _notifications(there, 0)[0]
    for number, table in enumerate(there.plan.tables):
        signal_snapshot(there.dsn, [table], f"keys{number}")
    expected = {table.source: ("SUCCEEDED", ROWS) for table in there.plan.tables}
    assert len(expected) == len(KEYS)
    lake.eventually(lambda: len(_notifications(there, first)[1]) == len(KEYS), 300)
    assert _notifications(there, first)[1] == expected
    lake.assert_equal()


def _notifications(lake: LocalLake, start: int) -> tuple[int, dict[str, tuple[str, int]]]:
    """The next offset of the notifications, and the ends of tables' snapshots from `start` on."""
    _, messages = read_messages(lake.kafka, lake.plan.notification_topic, start)
    ends = {}
    for message in messages:
        more = message.value.get("additional_data") or {}
        if message.value["type"] == "TABLE_SCAN_COMPLETED":
            rows = int(json.loads(more["total_rows_scanned"]))
            ends[more["scanned_collection"]] = (more["status"], rows)
    return (messages[-1].offset + 1 if messages else start), ends
