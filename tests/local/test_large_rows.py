"""Rows of 200 kB: connector and stream are bounded by bytes, so that both stay alive.

Measured on 2026-11-25 with 4,000 such rows: without bounds in bytes the worker, with a heap of 1 GB
and 10,240 rows fetched at once, ended with an OutOfMemoryError in its first snapshot, and so did
the stream, with a heap of 1.5 GB, in the batch that had all of them.
"""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from cdclake.local.lake.topics import end_offsets
from tests.local.running import RunningLake
from tests.local.test_connector_again import connect

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

ROWS, CHARACTERS = 4000, 200_000
LENGTH = CHARACTERS // 32 * 32
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


def test_a_first_snapshot_of_large_rows_reaches_the_lake(tmp_path: Path) -> None:
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
        kafka = lake.run("up", str(file))["kafka"]
        lake.eventually(lambda: in_kafka(kafka) == ROWS, seconds=120)
        stream = lake.pid("stream")
        arrived = f"SELECT count(*), sum(length(body)) FROM big WHERE length(body) = {LENGTH}"
        lake.eventually(lambda: lake.sql(arrived) == [[ROWS, ROWS * LENGTH]], seconds=240)
        assert psutil.pid_exists(stream)
        status = connect(lake, "GET", "/connectors/big-source/status")
        assert [task["state"] for task in status["tasks"]] == ["RUNNING"], status
        for log in ("connect.log", "stream.log"):
            assert "OutOfMemoryError" not in (lake.home / "logs" / log).read_text()
    finally:
        lake.run("down", "--purge", expect=None)


def in_kafka(kafka: str) -> int:
    return sum(end_offsets(kafka, [TOPIC])[TOPIC].values())
