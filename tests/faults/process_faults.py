"""Faults of the lake's own processes: killed in commit windows, paused, doubled."""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from cdclake.fail_points import FAIL_POINT_KEY
from tests.faults.fault import Fault, FaultyLake
from tests.local.test_one_writer import second_stream, stream_of

STREAM_POINTS = (
    "before_changelog_commit",
    "after_changelog_commit",
    "before_state_commit",
    "after_state_commit",
    "before_progress",
    "after_progress",
)
KILLS = 40


def _dies_before_state_commit(lake: FaultyLake) -> None:
    lake.stream_dies_at("before_state_commit", lake.random.randint(1, 6))


def _dies_before_progress(lake: FaultyLake) -> None:
    lake.stream_dies_at("before_progress", lake.random.randint(1, 3))


def _dies_between_tables(lake: FaultyLake) -> None:
    lake.stream_dies_at("after_changelog_commit", lake.random.randint(2, 4))


def _dies_often(lake: FaultyLake) -> None:
    with _written(lake):
        for number in range(KILLS):
            point = STREAM_POINTS[number % len(STREAM_POINTS)]
            lake.kill_stream_at(point, lake.random.randint(1, 2 if "state" in point else 5))
        lake.heal()


@contextmanager
def _written(lake: FaultyLake) -> Iterator[None]:
    """Write rows until the block ends: the histories end before, and then no commit is made."""
    ended, failures = threading.Event(), list[Exception]()
    first = lake.random.randrange(10**12, 10**13, 10**6)

    def write() -> None:
        try:
            with lake.lake.connect() as connection:
                for key in itertools.count(first):
                    connection.execute(
                        "INSERT INTO accounts (id, v, note) VALUES (%s, 1, 'written')", [key]
                    )
                    connection.execute("UPDATE accounts SET v = 2 WHERE id = %s", [key - 1])
                    connection.execute("DELETE FROM accounts WHERE id = %s", [key - 5])
                    if ended.wait(0.5):
                        return
        except psycopg.Error as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
    assert not failures, failures


def _stream_sleeps(lake: FaultyLake) -> None:
    with lake.suspended("stream"):
        time.sleep(60)
    lake.pause_s(1, 5)


def _two_streams(lake: FaultyLake) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "second.log"
        with second_stream(stream_of(lake.lake), log):
            lake.pause_s(20, 30)
    lake.heal()


def _connect_dies_in_snapshot(lake: FaultyLake) -> None:
    lake.lake.run("resync", "papers", "--no-wait")
    lake.pause_s(0, 2)
    lake.kill("connect")
    lake.heal()
    lake.lake.run("resync", "papers")


def _connect_dies_in_copy(lake: FaultyLake) -> None:
    first = lake.random.randrange(10**12, 10**13, 10**6)
    with (
        lake.lake.connect() as connection,
        connection.cursor() as cursor,
        cursor.copy("COPY accounts (id, v, note) FROM STDIN") as copy,
    ):
        for key in range(first, first + 5000):
            copy.write_row((key, key % 1000, "copied"))
    lake.pause_s(0, 1.5)
    lake.kill("connect")
    lake.heal()


def _broker_dies(lake: FaultyLake) -> None:
    lake.pause_s(1, 4)
    lake.kill("kafka")
    lake.heal()


def _broker_sleeps(lake: FaultyLake) -> None:
    with lake.suspended("kafka"):
        time.sleep(45)
    lake.heal()


def _database_dies(lake: FaultyLake) -> None:
    lake.pause_s(2, 5)
    lake.kill("postgres")
    lake.heal()


def _maintenance_meets_writers(lake: FaultyLake) -> None:
    for _ in range(3):
        lake.lake.run("job", "maintain_tables")


def _committers_meet(lake: FaultyLake) -> None:
    for _ in range(3):
        lake.lake.run("job", "apply_changes")


def _maintenance_dies(lake: FaultyLake) -> None:
    armed = {FAIL_POINT_KEY: f"inside_maintenance@{lake.random.randint(2, 12)}"}
    answer = lake.lake.run("job", "maintain_tables", expect=None, **armed)
    assert not answer["ok"], answer
    lake.release_leases()
    lake.lake.run("job", "maintain_tables")


def _resync_dies_before_signal(lake: FaultyLake) -> None:
    armed = {FAIL_POINT_KEY: "between_request_and_signal@1"}
    lake.command_dies("resync", "accounts", **armed)
    lake.lake.run("resync", "accounts")


PROCESS_FAULTS = (
    Fault(
        id="F1",
        group="stream",
        title="stream killed before a state's commit",
        inject=_dies_before_state_commit,
    ),
    Fault(
        id="F2",
        group="stream",
        title="stream killed after commits, before its progress",
        inject=_dies_before_progress,
    ),
    Fault(
        id="F3",
        group="stream",
        title="stream killed between two tables of a batch",
        inject=_dies_between_tables,
    ),
    Fault(id="F4", group="stream", title="stream suspended for 60 s", inject=_stream_sleeps),
    Fault(
        id="F5", group="stream", title="a second stream on the same checkpoint", inject=_two_streams
    ),
    Fault(
        id="F24",
        group="stream",
        title="another committer on the same states",
        inject=_committers_meet,
    ),
    Fault(
        id="F28",
        group="stream",
        title="maintenance concurrent with the stream",
        inject=_maintenance_meets_writers,
    ),
    Fault(
        id="F29",
        group="stream",
        title="maintenance killed between two actions",
        inject=_maintenance_dies,
    ),
    Fault(
        id="resync-dies",
        group="stream",
        title="resync killed between its request and its signal",
        inject=_resync_dies_before_signal,
    ),
    Fault(
        id="F6",
        group="servers",
        title="Connect killed in a snapshot",
        inject=_connect_dies_in_snapshot,
    ),
    Fault(
        id="F7",
        group="servers",
        title="Connect killed in rows of one COPY, which share an LSN",
        inject=_connect_dies_in_copy,
    ),
    Fault(id="F9", group="servers", title="broker killed", inject=_broker_dies),
    Fault(id="F10", group="servers", title="broker suspended for 45 s", inject=_broker_sleeps),
    Fault(
        id="F11",
        group="servers",
        title="PostgreSQL killed",
        inject=_database_dies,
        database_may_die=True,
    ),
    Fault(
        id="kills",
        group="kills",
        title=f"stream killed {KILLS} times in commit windows",
        inject=_dies_often,
    ),
)
