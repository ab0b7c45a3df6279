"""Rows of 200 kB: connector and stream bound their memory by bytes, so that both stay alive.

Measured on 2026-11-25. With 4,000 such rows, a heap of 1 GB, no bound in bytes of its queue and
10,240 rows fetched at once, the connector's worker ran out of memory in its first snapshot. With
10,000 rows the stream ran out of its 1.5 GB after five slices of the first batch: the consumer of
each slice kept the 500 records of its last poll, 100 MB, for five minutes. Now a heap histogram
after five slices shows no record, and 400 MB.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.local.components.kafka import Broker
from cdclake.local.lake.topics import end_offsets
from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

ROWS, CHARACTERS = 6000, 200_000
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
        # `verify` of all has more in memory than the reader's 2 GB allow for 10,000 such rows.
        lake.assert_equal("--sample", "1000")
        assert {name: lake.pid(name) for name in started} == started
        for name in started:
            assert "OutOfMemoryError" not in (lake.home / "logs" / f"{name}.log").read_text()


def in_kafka(kafka: Broker) -> int:
    return sum(end_offsets(kafka, [TOPIC])[TOPIC].values())


def in_state(lake: RunningLake) -> int:
    body = f"repeat(md5(id::text), {CHARACTERS // 32})"
    [[rows]] = lake.sql(f"SELECT count(*) FROM big WHERE body = {body}")
    return int(rows)
