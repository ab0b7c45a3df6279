"""Rows of 200 kB: the connector's queue is bounded by bytes, so that its worker stays alive.

Measured on 2026-11-25 with 4,000 such rows and a heap of 1 GB: without the bound, and with 10,240
rows fetched at once, the worker ended with an OutOfMemoryError in its first snapshot.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.local.components.kafka import Broker
from cdclake.local.lake.topics import end_offsets
from tests.local.running import RunningLake

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

ROWS, CHARACTERS = 4000, 200_000
TOPIC = "big.public.big"
PIPELINE = """\
version: 1
name: big
source: {database: postgres}
tables:
  public.big:
    key: [id]
    columns: {id: bigint, body: text}
"""


def test_a_first_snapshot_of_large_rows_reaches_kafka(tmp_path: Path) -> None:
    lake = RunningLake(tmp_path / "home")
    file = tmp_path / "big.yaml"
    file.write_text(PIPELINE)
    try:
        with lake.connect() as connection:
            connection.execute("CREATE TABLE big (id bigint PRIMARY KEY, body text)")
            connection.execute("ALTER TABLE big ALTER COLUMN body SET STORAGE EXTERNAL")
            connection.execute(
                "INSERT INTO big SELECT g, repeat(md5(g::text), %s::int)"
                " FROM generate_series(1, %s::int) g",
                (CHARACTERS // 32, ROWS),
            )
        # The stream has a memory of its own, which this is not about.
        lake.run("up", str(file), expect=None)
        kafka = lake.endpoints.kafka
        lake.eventually(lambda: in_kafka(kafka) == ROWS, seconds=120)
        assert state_of(lake, "connect") == "running"
        assert "OutOfMemoryError" not in (lake.home / "logs" / "connect.log").read_text()
    finally:
        lake.run("down", "--purge", expect=None)


def in_kafka(kafka: Broker) -> int:
    return sum(end_offsets(kafka, [TOPIC])[TOPIC].values())


def state_of(lake: RunningLake, component: str) -> str:
    parts = lake.run("status")["components"]
    return str(next(part["state"] for part in parts if part["name"] == component))
