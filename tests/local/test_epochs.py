"""A lost slot on the real lake: readers keep all rows while the new epoch's snapshot runs."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from cdclake.errors import CdcError
from cdclake.local.components import postgres_place
from cdclake.local.lake import connector_offsets
from cdclake.local.lake.lake import LakeState, describe_lake
from cdclake.local.process.home import Home
from cdclake.local.reader.duck import lake_reader
from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1500)]

ROWS = 40_000
TABLES = ("big", "emptied", "wide")
COLUMNS = "{key: [id], columns: {id: bigint, v: text, pad: text}}"
FILE = f"""version: 1
name: epochs
source: {{database: postgres}}
tables:
  public.big: {COLUMNS}
  public.emptied: {COLUMNS}
  public.wide: {COLUMNS}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("file") / "epochs.yaml"
    made.write_text(FILE)
    return str(made)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, file: str) -> Iterator[RunningLake]:
    with lake_in(tmp_path_factory.mktemp("lake")) as running:
        with running.connect() as connection:
            for table, rows, width in (("big", ROWS, 20), ("emptied", 1000, 1), ("wide", ROWS, 20)):
                connection.execute(
                    f"CREATE TABLE {table} (id bigint PRIMARY KEY, v text, pad text)".encode()
                )
                connection.execute(
                    f"INSERT INTO {table} SELECT i, 'old', repeat(md5(i::text), {width})"
                    f" FROM generate_series(1, {rows}) i".encode()
                )
        running.run("up", file, "--wait", "rows")
        running.assert_equal()
        yield running


class Watch:
    """Reader of the tables on a thread; it counts rows in `_current` and in `<t>` by table."""

    def __init__(self, lake: RunningLake) -> None:
        home = Home(lake.home)
        self._lake = describe_lake(home, LakeState.load(home))
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.counts: list[dict[str, tuple[int, int, int]]] = []
        self.states: list[str] = []

    def _run(self) -> None:
        reader = lake_reader(self._lake)
        while not self._closed.is_set():
            try:
                with reader.open() as session:
                    found = {}
                    for table in TABLES:
                        row = session.execute(
                            f"SELECT (SELECT count(*) FROM {table}_current),"
                            f" (SELECT count(*) FROM {table} WHERE NOT cdc_deleted),"
                            f" (SELECT count(*) FROM {table}_current WHERE v <> 'old')"
                        ).fetchone()
                        assert row is not None
                        found[table] = row
                    self.counts.append(found)
            except CdcError:
                time.sleep(0.2)

    def fewest(self, table: str) -> tuple[int, int]:
        """The fewest rows that a reader saw in the view, and in `<t>`."""
        seen = [count[table] for count in self.counts]
        return min(row[0] for row in seen), min(row[1] for row in seen)


@contextmanager
def watched(lake: RunningLake) -> Iterator[Watch]:
    watch = Watch(lake)
    watch._thread.start()
    try:
        yield watch
    finally:
        watch._closed.set()
        watch._thread.join()


def lose_slot(lake: RunningLake) -> None:
    with lake.connect() as connection:

        def is_dropped() -> bool:
            connection.execute(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
                " WHERE active_pid IS NOT NULL"
            )
            try:
                connection.execute(
                    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                )
            except psycopg.errors.ObjectInUse:  # the connector was faster
                return False
            return True

        lake.eventually(is_dropped, 60)


def test_readers_keep_all_rows_until_the_snapshot_is_complete(lake: RunningLake, file: str) -> None:
    lose_slot(lake)
    with lake.connect() as connection:
        for table in ("big", "wide"):
            connection.execute(f"DELETE FROM {table} WHERE id % 10 = 3".encode())
            connection.execute(f"UPDATE {table} SET v = 'new' WHERE id % 10 <> 3".encode())
        connection.execute("DELETE FROM emptied")
    with watched(lake) as watch:
        lake.run("up", file)
        loading = lake.run("status")["tables"]
        lake.run("up", file, "--wait", "rows")
        lake.eventually(lambda: watch.counts[-1]["wide"][1] == ROWS * 9 // 10, 60)
    assert lake.run("status")["epoch"] == 2
    left = ROWS * 9 // 10
    assert watch.fewest("big") == watch.fewest("wide") == (left, left)
    assert any(count["wide"][0] == ROWS and count["wide"][2] > 0 for count in watch.counts)
    assert watch.counts[0]["emptied"] == (1000, 1000, 0)
    assert watch.counts[-1]["emptied"] == (0, 0, 0)
    assert {table["state"] for table in loading} == {"loading"}, loading
    assert all(table["loading"]["phase"] in ("reading", "replacing") for table in loading)
    assert {table["state"] for table in lake.run("status")["tables"]} == {"streaming"}
    lake.assert_equal("--deep")
    for table in TABLES:
        [[swept]] = lake.sql(f"select count(*) from {table}_changes where cdc_op = 't'")
        assert swept == 1, table


def test_an_emptied_table_takes_rows_in_the_new_epoch(lake: RunningLake) -> None:
    with lake.connect() as connection:
        connection.execute("INSERT INTO emptied VALUES (1, 'again', NULL)")
    lake.assert_equal()


def test_a_snapshot_that_is_taken_again_leaves_no_row_of_its_first_try(
    lake: RunningLake, file: str
) -> None:
    """Connect dies during the snapshot; what was deleted until the second one disappears."""
    connect, epoch = lake.pid("connect"), lake.run("status")["epoch"] + 1
    lose_slot(lake)
    with lake.connect() as connection:
        up = threading.Thread(target=lambda: lake.run("up", file, expect=None))
        up.start()
        deadline = time.monotonic() + 240
        while not connection.execute("SELECT FROM pg_replication_slots").fetchall():
            assert time.monotonic() < deadline, "no snapshot has begun"
            time.sleep(0.02)
        # The connector waits at the last table: its snapshot has read the others.
        connection.execute("BEGIN")
        connection.execute("LOCK TABLE wide IN ACCESS EXCLUSIVE MODE")

        def has_rows() -> bool:
            [[rows]] = lake.sql(f"select count(*) from big_changes where cdc_epoch = {epoch}")
            return bool(rows)

        try:
            lake.eventually(has_rows, 240)
            with lake.connect() as other:
                other.execute("DELETE FROM big WHERE id % 10 = 7")
            os.kill(connect, signal.SIGKILL)  # `status` would wait for the lock
        finally:
            connection.execute("ROLLBACK")
        with watched(lake) as watch:
            up.join()
            lake.run("up", file, "--wait", "rows")
    assert watch.fewest("big")[0] >= ROWS * 8 // 10
    lake.assert_equal("--deep")
    [[left]] = lake.sql("select count(*) from big_current where id % 10 = 7")
    assert left == 0


def test_a_dropped_publication_begins_an_epoch(lake: RunningLake, file: str) -> None:
    """PostgreSQL 17 fails at each change of the time without one, also once it exists again."""
    epoch = lake.run("status")["epoch"]
    with lake.connect() as connection:
        connection.execute("DROP PUBLICATION cdclake_epochs")
        connection.execute("INSERT INTO emptied VALUES (-2, 'unpublished', NULL)")
        connection.execute("DELETE FROM big WHERE id % 10 = 1")
    log = lake.home / "logs" / "connect.log"
    failure = 'publication "cdclake_epochs" does not exist'
    lake.eventually(lambda: failure in log.read_text(errors="replace"), 120)
    lake.run("up", file, "--wait", "rows")
    assert lake.run("status")["epoch"] == epoch + 1
    lake.assert_equal()


def test_a_source_that_is_set_back_with_its_slot_begins_an_epoch(
    lake: RunningLake, file: str, tmp_path: Path
) -> None:
    epoch = lake.run("status")["epoch"] + 1
    data = postgres_place.place(Home(lake.home)).data
    lake.run("down")
    subprocess.run(["cp", "-a", str(data), str(tmp_path / "kept")], check=True)
    lake.run("up", file)
    with lake.connect() as connection:
        connection.execute("SELECT pg_switch_wal()")  # to the next 16 MB
        connection.execute("DELETE FROM big WHERE id % 10 = 1")
        connection.execute("INSERT INTO wide VALUES (-1, 'undone', NULL)")
    lake.assert_equal()
    lake.run("down")
    shutil.rmtree(data)
    subprocess.run(["cp", "-a", str(tmp_path / "kept"), str(data)], check=True)
    did = lake.run("up", file, "--wait", "rows")["did"]
    assert did[-2:] == [connector_offsets.SET_BACK, f"epoch {epoch} began"]
    assert lake.run("up", file)["did"] == []
    lake.assert_equal("--deep")
