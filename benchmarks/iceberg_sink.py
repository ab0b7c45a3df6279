"""`python -m benchmarks.iceberg_sink [RUN]`: Iceberg's sink compared with the changelog.

Both read the same topic of a real lake. Kafka Connect is killed while the sink commits, and started
again by `up`. Then every row of `noted_sink` is matched with the event of its Kafka offset in
`noted_changes`. Each run takes some minutes, and is written to
benchmarks/results/iceberg-sink.json, which docs/ways.md states.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka import Consumer, TopicPartition

from benchmarks.lake_fixture import await_arrival, source_of, stream
from benchmarks.machine import machine, versions
from benchmarks.run import say
from benchmarks.session import PROJECT
from benchmarks.sink_rows import OVERSIZED_ID, compare_rows
from cdclake.config.resolve import load_plan
from cdclake.debezium.record_limit import MAX_EVENT_BYTES
from cdclake.local.components import connect
from cdclake.local.lake import stack
from cdclake.local.lake.declared_connectors import connector_states
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.topics import end_offsets, group_offsets
from cdclake.local.process.home import Home
from cdclake.plan import Plan

RESULTS = PROJECT / "benchmarks" / "results" / "iceberg-sink.json"
PIPELINE = PROJECT / "benchmarks" / "iceberg_sink.yaml"
# Records of a commit in the control topic, with those that end transactions: the coordinator has
# begun it, the task has written its files, the table has its snapshot.
STARTED, WRITTEN, APPENDED = 2, 5, 7


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill of Connect: so many milliseconds after a commit has written so many records."""

    after: int
    delay_ms: int = 0
    is_first: bool = False  # in the first commit of the sink


_FIRST = (Kill(WRITTEN, is_first=True),)
_LATER = (Kill(STARTED), Kill(WRITTEN), Kill(WRITTEN, 40), Kill(WRITTEN, 80), Kill(APPENDED))
# By name: where the sink's groups begin without an offset, and the kills.
RUNS: dict[str, tuple[str, tuple[Kill, ...]]] = {
    "latest_first": ("latest", _FIRST),
    "latest_later": ("latest", _LATER),
    "earliest": ("earliest", (*_FIRST, *_LATER)),
}
_COMMIT_RECORDS = 9  # of a whole commit, in the control topic
_SETTLED_SECONDS = 120.0
_COMMIT_SECONDS = 60.0
_TABLE = """
CREATE TABLE noted (id bigint PRIMARY KEY, v int NOT NULL, amount numeric(12,2) NOT NULL DEFAULT 5,
  note text, at timestamptz);
ALTER TABLE noted ALTER COLUMN note SET STORAGE EXTERNAL;
INSERT INTO noted SELECT i, i, i * 1.25, repeat('first ', 700), now() FROM generate_series(1, 200) i
"""
# Each round: an insert, an update that leaves the TOAST value alone, one that changes it, a changed
# key and a delete.
_ROUND = """
INSERT INTO noted VALUES (%(new)s, 1, 1.10, repeat('note ', 900), now());
UPDATE noted SET v = v + 1 WHERE id = %(new)s - 3;
UPDATE noted SET note = repeat('other ', 800) WHERE id = %(new)s - 5;
UPDATE noted SET id = id + 1000000 WHERE id = %(new)s - 9;
DELETE FROM noted WHERE id = %(new)s - 20
"""


def main() -> int:
    """Measure the named run, or all, and write the results; return 1 if a row has no event."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"measures": {}}
    for name in sys.argv[1:] or RUNS:
        with tempfile.TemporaryDirectory(prefix="cdclake-sink-") as folder:
            found = measure(Path(folder), *RUNS[name])
        say(json.dumps({name: found}))
        results["measures"][name] = found
        results["machine"] = machine()
        results["versions"] = {**versions(), "iceberg-kafka-connect": _sink_version()}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return int(any(found["unexplained_rows"] for found in results["measures"].values()))


def measure(folder: Path, reset: str, kills: Sequence[Kill]) -> dict[str, Any]:
    """Kill Connect in commits while changes are written, and compare the rows afterwards."""
    file = folder / PIPELINE.name
    file.write_text(PIPELINE.read_text().replace("reset: earliest", f"reset: {reset}"))
    plan = load_plan(file)
    with source_of(folder / "home", plan) as (home, dsn):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(_TABLE)
        lake, done = stream(home, plan), []
        with _Writer(dsn) as writer:
            for kill in kills:
                done.append({**asdict(kill), "control_records": _kill_in_commit(lake, kill)})
                lake = stream(home, plan)
            writer.truncate()
            writer.insert_oversized()
            time.sleep(2)
        await_arrival(lake)
        has_read_topic = _await_sink(lake)
        [sink] = connector_states(lake)
        return {
            "offset_reset": reset,
            "kills": done,
            "state": sink.state,
            "has_read_topic": has_read_topic,
            "commit_seconds": round(_interval_seconds(plan)),
            **compare_rows(lake),
        }


class _Writer:
    """Thread that changes the table until the block ends."""

    def __init__(self, dsn: str) -> None:
        self._dsn, self._closed = dsn, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> _Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    def truncate(self) -> None:
        """Empty the table, while the thread goes on."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute("TRUNCATE noted")

    def insert_oversized(self) -> None:
        """Insert a row that is too large for Kafka."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO noted VALUES (%s, 1, 1, repeat('x', %s))",
                (OVERSIZED_ID, MAX_EVENT_BYTES + 1),
            )

    def _run(self) -> None:
        new = 1000
        with psycopg.connect(self._dsn) as connection:
            while not self._closed.wait(0.02):
                for statement in _ROUND.split(";"):
                    connection.execute(statement, {"new": new})
                connection.commit()
                new += 1


def _kill_in_commit(lake: LocalLake, kill: Kill) -> int:
    """Kill Connect in a commit; return how many records of it the control topic has."""
    topic = TopicPartition(lake.plan.control_topics["sink"], 0)
    settings = {**lake.kafka.settings, "group.id": "benchmark"}
    control = Consumer(settings)

    def end() -> int:
        return int(control.get_watermark_offsets(topic, timeout=10)[1])

    try:
        if not kill.is_first:
            _await_end(end, _COMMIT_RECORDS)
        first = 0 if kill.is_first else _await_pause(end)
        _await_end(end, first + kill.after)
        time.sleep(kill.delay_ms / 1000)
        _kill_connect(lake.home)
        return end() - first
    finally:
        control.close()


def _await_end(end: Callable[[], int], least: int) -> None:
    deadline = time.monotonic() + _COMMIT_SECONDS
    while end() < least:
        if time.monotonic() > deadline:
            raise TimeoutError(f"no commit of the sink within {_COMMIT_SECONDS:.0f} s")


def _await_pause(end: Callable[[], int]) -> int:
    """Return the end of the control topic as soon as it has not moved for a second."""
    before, since = end(), time.monotonic()
    while time.monotonic() - since < 1:
        time.sleep(0.02)
        now = end()
        if now != before:
            before, since = now, time.monotonic()
    return before


def _kill_connect(home: Home) -> None:
    os.kill(int(_worker(home)["pid"]), signal.SIGKILL)
    while _worker(home)["state"] == "running":
        time.sleep(0.1)


def _worker(home: Home) -> dict[str, Any]:
    return next(part for part in stack.components(home) if part["name"] == connect.NAME)


def _await_sink(lake: LocalLake) -> bool:
    """Wait until the sink has read the whole topic and committed twice since.

    Return False if it has not read it in time: `missing` then includes events that it would read.
    """
    [table] = lake.plan.tables
    group = f"connect-{lake.plan.name}-sink"
    deadline = time.monotonic() + _SETTLED_SECONDS
    ends = end_offsets(lake.kafka, [table.topic])[table.topic]
    while group_offsets(lake.kafka, group, table.topic) != ends:
        if time.monotonic() > deadline:
            say(f"the sink has not read its topic within {_SETTLED_SECONDS:.0f} s")
            return False
        time.sleep(0.5)
    time.sleep(2 * _interval_seconds(lake.plan))
    return True


def _interval_seconds(plan: Plan) -> float:
    return int(plan.connectors[0].settings["iceberg.control.commit.interval-ms"]) / 1000


def _sink_version() -> str:
    [jar] = (PROJECT / "jars" / "iceberg-sink").glob("iceberg-kafka-connect-[0-9]*.jar")
    return jar.stem.removeprefix("iceberg-kafka-connect-")


if __name__ == "__main__":
    sys.exit(main())
