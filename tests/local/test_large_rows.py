"""Rows of 200 kB: connector and stream bound their memory by bytes, so that both stay alive.

Measured on 2026-11-25 with 4,000 such rows. With a heap of 1 GB, without a bound of its queue and
with 10,240 rows fetched at once, the connector's worker ran out of memory in its first snapshot.
The stream ran out of its 1.5 GB in the fourth slice of the batch: the consumer of each slice kept
the 500 records of its last poll, 100 MB, for five minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.local.components.kafka import Broker
from cdclake.local.lake.topics import end_offsets
from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

ROWS, CHARACTERS = 10_000, 200_000
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


def test_a_first_snapshot_of_large_rows_arrives(tmp_path: Path) -> None:
    file = tmp_path / "big.yaml"
    file.write_text(PIPELINE)
    with lake_in(tmp_path) as lake:
        with lake.connect() as connection:
            connection.execute("CREATE TABLE big (id bigint PRIMARY KEY, body text)")
            connection.execute("ALTER TABLE big ALTER COLUMN body SET STORAGE EXTERNAL")
            connection.execute(
                "INSERT INTO big SELECT g, repeat(md5(g::text), %s::int)"
                " FROM generate_series(1, %s::int) g",
                (CHARACTERS // 32, ROWS),
            )
        lake.run("up", str(file), "--wait", "started")
        kafka = lake.endpoints.kafka
        started = {name: lake.pid(name) for name in ("connect", "stream")}
        lake.eventually(lambda: in_kafka(kafka) == ROWS, seconds=240)
        lake.eventually(lambda: in_state(lake) == ROWS, seconds=300)
        lake.assert_equal()
        assert {name: lake.pid(name) for name in started} == started
        for name in started:
            assert "OutOfMemoryError" not in (lake.home / "logs" / f"{name}.log").read_text()


def in_kafka(kafka: Broker) -> int:
    return sum(end_offsets(kafka, [TOPIC])[TOPIC].values())


def in_state(lake: RunningLake) -> int:
    [[rows]] = lake.sql("SELECT count(*) FROM big")
    return int(rows)
