"""What a prepared source goes through: other declarations, new partitions, readers, the end."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cdclake.errors import InputError
from cdclake.jobs.runtime.source import confirmed_lsn, connect, write_marker
from cdclake.local.lake.source import prepare_source, remove_from_source, server_of, slot_wal
from cdclake.plan import Plan
from cdclake.postgres.source import read_publication
from tests.local.repeated_work import repeated
from tests.local.source_database import OWNER, PASSWORD, proposed, role_dsn, run, uncommented

pytestmark = pytest.mark.local


def published(database: str, name: str) -> dict[tuple[str, str], Any]:
    """Return the publication's tables and their column lists."""
    with connect(database) as connection:
        state = read_publication(connection, name)
    assert state.right
    return dict(state.tables or {})


def test_the_publication_follows_the_declaration(database: str, tmp_path: Path) -> None:
    run(
        database,
        "CREATE TABLE a (id int PRIMARY KEY, secret text, n int)",
        "CREATE TABLE b (id int PRIMARY KEY)",
    )
    both = proposed(database, tmp_path / "p.yaml")
    one = proposed(
        database,
        tmp_path / "q.yaml",
        lambda text: text.replace("secret: text", "secret: {exclude: true}").split("  public.b")[0],
    )
    name = both.source_object
    own = {("cdclake", "heartbeat"): None, ("cdclake", "signal"): None}
    everything = {**own, ("public", "a"): None, ("public", "b"): None}
    prepare_source(database, both, embedded=True, owner=OWNER, role_password=PASSWORD)
    assert published(database, name) == everything
    prepare_source(database, one, embedded=True, owner=OWNER, role_password=PASSWORD)
    assert published(database, name) == {**own, ("public", "a"): ("id", "n")}
    with psycopg.connect(role_dsn(database, both), autocommit=True) as connection:
        connection.execute("SELECT id, n FROM a")
        for hidden in ("SELECT secret FROM a", "TABLE b"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(hidden.encode())
    for narrowed in ("SET (publish = 'insert')", "SET TABLE cdclake.signal, a WHERE (id > 1), b"):
        run(database, f"ALTER PUBLICATION {name} {narrowed}")
        with connect(database) as connection:
            publication = read_publication(connection, name)
        lacking = {table.table for table in both.tables if publication.lacks(table)}
        assert lacking == ({"a", "b"} if "publish" in narrowed else {"a"})
        prepare_source(database, both, embedded=True, owner=OWNER, role_password=PASSWORD)
        assert published(database, name) == everything
    run(database, f"DROP PUBLICATION {name}", f"CREATE PUBLICATION {name} FOR ALL TABLES")
    prepare_source(database, both, embedded=True, owner=OWNER, role_password=PASSWORD)
    assert published(database, name) == everything


def test_no_writer_waits_while_a_reader_delays_the_change(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY)", "ALTER TABLE a REPLICA IDENTITY NOTHING")
    plan = proposed(database, tmp_path / "p.yaml", uncommented)
    slowest = 0.0
    with psycopg.connect(database) as reader:
        reader.execute("TABLE a")  # its lock stays until the transaction ends
        worker = threading.Thread(
            target=prepare_source,
            args=(database, plan),
            kwargs={"embedded": True, "owner": OWNER, "role_password": PASSWORD},
        )
        worker.start()
        with psycopg.connect(database, autocommit=True) as writer:
            for number in range(300):
                start = time.monotonic()
                writer.execute("INSERT INTO a VALUES (%s)", (number,))
                slowest = max(slowest, time.monotonic() - start)
                time.sleep(0.01)
        assert worker.is_alive()
    worker.join(timeout=30)
    assert run(database, "SELECT relreplident::text FROM pg_class WHERE relname = 'a'") == [("d",)]
    assert slowest < 3.0  # without a limit they would wait for the reader's end


def partitioned(database: str, folder: Path, identity: str) -> Plan:
    """Create a partitioned table without a primary key; return the plan of its database."""
    run(
        database,
        "CREATE TABLE parts (id int NOT NULL, v text) PARTITION BY RANGE (id)",
        "CREATE UNIQUE INDEX parts_key ON parts (id)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)",
        f"ALTER TABLE parts REPLICA IDENTITY {identity}",
        f"ALTER TABLE parts_1 REPLICA IDENTITY {identity.replace('parts_key', 'parts_1_id_idx')}",
    )
    return proposed(database, folder / "p.yaml")


@pytest.mark.parametrize("identity", ["FULL", "USING INDEX parts_key"])
def test_partitions_made_later_take_updates_too(
    database: str, tmp_path: Path, identity: str
) -> None:
    plan = partitioned(database, tmp_path, identity)
    assert (
        prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD).altered
        == ()
    )
    run(
        database,
        "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20)",
        "CREATE TABLE parts_3 PARTITION OF parts DEFAULT PARTITION BY LIST (id)",
        "CREATE TABLE parts_4 (id int NOT NULL, v text)",
        "ALTER TABLE parts_3 ATTACH PARTITION parts_4 FOR VALUES IN (30)",
        "INSERT INTO parts VALUES (1), (11), (30)",
        "UPDATE parts SET v = 'x'",
    )
    assert (
        prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD).altered
        == ()
    )
    remove_from_source(database, plan, OWNER)
    assert run(database, "SELECT FROM pg_event_trigger") == []


@pytest.mark.parametrize("identity", ["FULL", "USING INDEX parts_key"])
def test_a_users_partitioned_table_needs_a_primary_key(
    database: str, tmp_path: Path, identity: str
) -> None:
    plan = partitioned(database, tmp_path, identity)
    with pytest.raises(InputError, match="gives it the replica identity DEFAULT"):
        prepare_source(database, plan, embedded=False, owner=OWNER, role_password=PASSWORD)
    run(database, "ALTER TABLE parts ADD PRIMARY KEY (id)")
    prepare_source(database, plan, embedded=False, owner=OWNER, role_password=PASSWORD)
    run(
        database,
        "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20)",
        "INSERT INTO parts VALUES (1), (11)",
        "UPDATE parts SET v = 'x'",
    )


def test_another_lakes_stream_is_not_taken_over(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    slot = plan.source_object
    prepare_source(database, plan, embedded=False, owner=OWNER, role_password=PASSWORD)
    run(database, f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    reader = psycopg.pq.PGconn.connect(
        make_conninfo(role_dsn(database, plan), replication="database").encode()
    )
    options = f"proto_version '1', publication_names '{slot}'"
    reader.exec_(f"START_REPLICATION SLOT {slot} LOGICAL 0/0 ({options})".encode())
    other = replace(OWNER, id="local:another")
    with pytest.raises(InputError, match="belong to another lake"):
        prepare_source(database, plan, embedded=False, owner=other, role_password=PASSWORD)
    with pytest.raises(InputError, match="belong to another lake"):
        remove_from_source(database, plan, other)
    prepare_source(database, plan, embedded=False, owner=OWNER, role_password=PASSWORD)
    remove_from_source(database, plan, OWNER)
    assert run(database, "SELECT FROM pg_replication_slots") == []
    reader.finish()


def test_slot_and_marker_are_measured_and_the_slot_goes(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    slot = plan.source_object
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    assert confirmed_lsn(database, slot) is None
    assert slot_wal(database, slot)[:2] == (0, 4 * 1024**3)
    run(database, f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    confirmed = confirmed_lsn(database, slot)
    first, second = write_marker(database, "one"), write_marker(database)
    assert confirmed is not None
    assert confirmed < first < second
    assert slot_wal(database, slot)[0] > 0
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    assert server_of(database, plan).slot_exists
    with psycopg.connect(role_dsn(database, plan), autocommit=True) as session:
        remove_from_source(database, plan, OWNER)
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    assert run(database, "SELECT FROM pg_replication_slots") == []


def test_what_is_not_ours_in_the_schema_stays(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE SCHEMA cdclake")
    run(database, "CREATE TABLE cdclake.notes (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    prepare_source(database, plan, embedded=False, owner=OWNER, role_password=PASSWORD)
    remove_from_source(database, plan, OWNER)
    rows = run(database, "SELECT tablename::text FROM pg_tables WHERE schemaname = 'cdclake'")
    assert rows == [("notes",)]


def test_an_owner_without_superuser_can_prepare_and_leave(database: str, tmp_path: Path) -> None:
    name = f"owner_of_{conninfo_to_dict(database)['dbname']}"
    run(database, f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
    run(database, "CREATE TABLE a (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    dsn = make_conninfo(database, user=name, password="x")
    with pytest.raises(InputError) as refused:
        prepare_source(dsn, plan, embedded=False, owner=OWNER, role_password=PASSWORD)
    for problem in ("may not create a schema", "may not create the role", "REPLICATION", "not own"):
        assert problem in refused.value.message
    run(
        database,
        f"GRANT CREATE ON DATABASE {plan.source_database} TO {name}",
        f"ALTER ROLE {name} CREATEROLE REPLICATION",
        f"ALTER TABLE a OWNER TO {name}",
    )
    for _ in range(2):
        prepare_source(dsn, plan, embedded=False, owner=OWNER, role_password=PASSWORD)
    with psycopg.connect(role_dsn(database, plan)) as reader:
        reader.execute("TABLE a")
        remove_from_source(dsn, plan, OWNER)
        with pytest.raises(psycopg.OperationalError):
            reader.execute("SELECT 1")
    assert run(database, f"SELECT FROM pg_roles WHERE rolname = '{plan.source_object}'") == []


def test_a_truncate_and_our_grants_do_not_fail_each_other(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")

    def truncate() -> None:
        with psycopg.connect(database) as writer:
            writer.execute("TRUNCATE a")
            time.sleep(0.05)
            writer.execute("TRUNCATE b")

    with repeated(truncate, 0.1) as truncated:
        for _ in range(6):
            prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    assert truncated[0] > 0


def test_a_table_that_a_cascade_took_out_of_the_publication_is_noticed(
    database: str, tmp_path: Path
) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY, secret text, y text)")
    hidden = ("secret: text", "secret: {exclude: true}")
    plan = proposed(database, tmp_path / "p.yaml", lambda text: text.replace(*hidden))
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        run(database, "ALTER TABLE a DROP COLUMN y")
    run(database, "ALTER TABLE a DROP COLUMN y CASCADE")
    mended = proposed(database, tmp_path / "q.yaml", lambda text: text.replace(*hidden))
    for is_lost in (True, False):
        with connect(database) as connection:
            publication = read_publication(connection, plan.source_object)
        assert publication.lacks(mended.tables[0]) == is_lost
        prepare_source(database, mended, embedded=True, owner=OWNER, role_password=PASSWORD)


class Inserting(threading.Thread):
    """Writer of rows of `a`, one in each transaction, until it is closed."""

    def __init__(self, database: str) -> None:
        super().__init__(daemon=True)
        self._database = database
        self._closing = threading.Event()
        self.rows = 0

    def run(self) -> None:
        with psycopg.connect(self._database, autocommit=True) as writer:
            while not self._closing.is_set():
                writer.execute("INSERT INTO a VALUES (%s, 'x', 1)", (self.rows,))
                self.rows += 1

    def wait_for(self, rows: int) -> None:
        while self.rows < rows and self.is_alive():
            time.sleep(0.01)

    def close(self) -> None:
        self._closing.set()
        self.join()


def test_a_listed_columns_type_changes_in_one_transaction_and_no_change_is_lost(
    database: str, tmp_path: Path
) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY, secret text, n int)")
    plan = proposed(
        database,
        tmp_path / "p.yaml",
        lambda text: text.replace("secret: text", "secret: {exclude: true}"),
    )
    name = plan.source_object
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    run(database, f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        run(database, "ALTER TABLE a ALTER COLUMN n TYPE bigint")
    writer = Inserting(database)
    writer.start()
    writer.wait_for(20)
    with psycopg.connect(database) as owner:
        for statement in (
            "LOCK TABLE a",
            f"ALTER PUBLICATION {name} DROP TABLE a",
            "ALTER TABLE a ALTER COLUMN n TYPE bigint",
            f"ALTER PUBLICATION {name} ADD TABLE a (id, n)",
        ):
            owner.execute(statement.encode())
    changed_at = writer.rows
    writer.wait_for(changed_at + 20)
    writer.close()
    assert writer.rows >= changed_at + 20
    [(inserts,)] = run(
        database,
        "SELECT count(*) FROM pg_logical_slot_get_binary_changes("
        f"'{name}', NULL, NULL, 'proto_version', '1', 'publication_names', '{name}')"
        " WHERE get_byte(data, 0) = ascii('I')",
    )
    run(database, f"SELECT pg_drop_replication_slot('{name}')")
    assert inserts == writer.rows
