"""Polls of a replica, of a partitioned table, of one that was altered, and before the log."""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from cdclake import naming
from cdclake.debezium.position import just_after
from cdclake.errors import TableError
from cdclake.jobs.operations.stale_rows import count_read_rows, delete_stale_rows
from cdclake.jobs.poll.polled_snapshot import SourceLogin, polled_snapshot
from cdclake.jobs.poll.table_poll import TablePoll
from cdclake.plan import Column
from cdclake.postgres import bulk_read
from tests.local.source_database import running_server
from tests.local.standby import running_standby
from tests.spark.events import Engine
from tests.spark.polled_table import COLUMNS, PolledTable

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with running_server() as server:
        yield f"{server}/postgres"


@pytest.mark.slow
def test_a_replica_reads_again_what_was_written_within_the_overlap(spark, dsn):
    polled = PolledTable(spark, dsn, {"deletes": "none"})
    polled.run(f"INSERT INTO {polled.name} VALUES (1, 'a', 1, '2020-01-01'), (2, 'b', 2, now())")
    with running_standby(dsn) as replica:
        assert polled.poll(replica) == 2
        with polled.transaction() as long, polled.transaction() as short:
            for transaction, key, minutes in ((long, 3, 60), (short, 4, 5)):
                transaction.execute(
                    f"INSERT INTO {polled.name} VALUES ({key}, 'late', 0,"
                    f" now() - interval '{minutes} minutes')"
                )
            polled.run(f"INSERT INTO {polled.name} VALUES (5, 'c', 0, now())")
            await_replay(dsn, replica)
            assert polled.poll(replica) == 1
        await_replay(dsn, replica)
        assert polled.poll(replica) == 1
        assert [row[0] for row in polled.rows()] == [1, 2, 4, 5]  # 3 is older than the overlap
        sweeping = replace(polled.table.poll, deletes="sweep")
        polled.plan = replace(polled.plan, polled=(replace(polled.table, polling=sweeping),))
        assert polled.poll(replica) == 1
        assert polled.rows() == polled.source_rows()


def await_replay(primary: str, replica: str) -> None:
    """Wait until the replica has everything that the primary has written."""
    with psycopg.connect(primary) as one, psycopg.connect(replica, autocommit=True) as other:
        [[lsn]] = one.execute("SELECT pg_current_wal_lsn()").fetchall()
        replayed = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
        deadline = time.monotonic() + 30
        while other.execute(replayed, [lsn]).fetchall() != [(True,)]:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.slow
def test_a_run_with_an_older_plan_keeps_a_newer_column(spark, dsn):
    polled = PolledTable(spark, dsn)
    old = polled.plan, polled.control, polled.table, time.time(), "s3://state/plan-old.json"
    polled.run(
        f"ALTER TABLE {polled.name} ADD note text",
        f"INSERT INTO {polled.name} VALUES (1, 'a', 1, now(), 'noted')",
    )
    columns = (*COLUMNS, Column(source="note", name="note", type="text"))
    polled.plan = replace(polled.plan, polled=(replace(polled.table, columns=columns),))
    assert polled.poll() == 1
    login = SourceLogin(dsn=dsn, salt="salt")
    poll = TablePoll(polled.lake, *old)  # type: ignore[arg-type]
    assert poll.run(login) == 0
    [row] = polled.lake.read(polled.name).select("v", "note").collect()
    assert tuple(row) == ("a", "noted")


@pytest.mark.slow
def test_a_table_that_was_altered_in_the_source_is_refused_with_what_to_write(spark, dsn):
    polled = PolledTable(spark, dsn)
    polled.run(f"ALTER TABLE {polled.name} ALTER amount TYPE text")
    with pytest.raises(
        TableError, match=r"is declared numeric\(6,2\), but has the type text"
    ) as found:
        polled.poll()
    assert "write `amount: text`" in str(found.value)


@pytest.mark.slow
def test_a_partitioned_table_is_read_in_chunks_that_hold_rows_of_every_partition(
    spark, dsn, monkeypatch
):
    monkeypatch.setattr(bulk_read, "_BLOCKS_PER_CHUNK", 1)
    polled = PolledTable(spark, dsn, create=False)
    parts = [
        f"CREATE TABLE {polled.name}_{n} PARTITION OF {polled.name}"
        f" FOR VALUES WITH (MODULUS 3, REMAINDER {n})"
        for n in range(3)
    ]
    polled.run(
        f"CREATE TABLE {polled.name} (id bigint PRIMARY KEY, v text, amount numeric(6,2),"
        " at timestamptz NOT NULL DEFAULT now()) PARTITION BY HASH (id)",
        *parts,
        f"INSERT INTO {polled.name} (id, v) SELECT i, repeat('v', 300)"
        " FROM generate_series(1, 600) i",
    )
    assert polled.poll() == 600
    places = polled.lake.read(polled.table.changes).select(naming.POSITION).distinct().count()
    assert places == 600
    polled.run(
        f"UPDATE {polled.name} SET v = 'new' WHERE id % 100 = 0",
        f"DELETE FROM {polled.name} WHERE id = 1",
    )
    assert polled.poll() == 7
    assert polled.rows() == polled.source_rows()


@pytest.mark.slow
def test_rows_of_the_newest_poll_are_stale_if_the_log_lacks_them(spark, dsn):
    polled = PolledTable(spark, dsn)
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'a'), (2, 'gone')")
    polled.poll()
    logged = replace(polled.table, delivery="stream", polling=None)
    engine = Engine(spark, replace(polled.plan, tables=(logged,), polled=()))
    known = str(just_after(engine.log()[-1][naming.POSITION]))
    assert count_read_rows(engine.stream(), known) == 0
    signalled = polled.progress().lsn + 100
    read = engine.event("r", signalled, signalled, id=1, incremental=True)
    row = {"id": 1, "v": "b", "amount": None, "at": "2026-01-01T00:00:00Z"}
    read["value"]["after"] = row
    engine.run(read)
    assert count_read_rows(engine.stream(), known) == 1
    assert delete_stale_rows(engine.stream(), known) == 1
    assert polled.rows() == [(1, "b", None)]


@pytest.mark.slow
def test_a_poll_fails_with_more_refused_rows_than_the_limit_as_a_stream_does(spark, dsn):
    polled = PolledTable(spark, dsn)
    polled.plan = replace(polled.plan, stop_table_after=1)
    polled.run(f"INSERT INTO {polled.name} (id, amount) VALUES (1, 'NaN'), (2, 5)")
    assert polled.poll() == 1
    polled.run(f"INSERT INTO {polled.name} (id, amount) VALUES (3, 'NaN'), (4, 'NaN')")
    with pytest.raises(TableError, match=r"cannot be stored, more than stop_table_after=1"):
        polled.poll()
    assert [row[0] for row in polled.rows()] == [2]


@pytest.mark.slow
def test_after_another_policy_rows_that_were_refused_are_read_again(spark, dsn):
    polled = PolledTable(spark, dsn, {"deletes": "none"})
    polled.run(f"INSERT INTO {polled.name} VALUES (1, 'a', 'NaN', '2020-01-01')")
    assert [polled.poll(), polled.progress().refused] == [0, 1]
    polled.plan = replace(polled.plan, not_representable="null")
    assert [polled.poll(), polled.progress().refused] == [1, 0]
    assert polled.rows() == [(1, "a", None)]


@pytest.mark.slow
def test_a_querys_mask_is_not_cut_to_the_columns_of_a_table_of_its_name(spark, dsn):
    polled = PolledTable(spark, dsn)
    polled.run(
        f"ALTER TABLE {polled.name} ALTER v TYPE varchar(40)",
        f"INSERT INTO {polled.name} (id, v) VALUES (1, 'secret')",
    )
    masked = Column(source="v", name="v", type="text", mask="hash")
    polling = replace(polled.table.poll, query=f"SELECT * FROM public.{polled.name}")
    columns = (COLUMNS[0], masked, *COLUMNS[2:])
    query = replace(polled.table, columns=columns, polling=polling)
    polled.plan = replace(polled.plan, polled=(query,))
    assert polled.poll() == 1
    assert [row[1] for row in polled.rows()] == [hashlib.sha256(b"saltsecret").hexdigest()]


@pytest.mark.slow
def test_a_rename_that_is_declared_in_advance_stops_no_poll(spark, dsn):
    polled = PolledTable(spark, dsn, {"deletes": "none"})
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'a')")
    polled.poll()
    renamed = [
        replace(column, source=f"new_{column.source}", renamed_from=(column.source,))
        for column in COLUMNS[1:]
    ]
    table = replace(polled.table, columns=(COLUMNS[0], *renamed))
    polled.plan = replace(polled.plan, polled=(table,))
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (2, 'b')")
    assert [polled.poll(), polled.poll()] == [1, 0]
    polled.run(
        *(f"ALTER TABLE {polled.name} RENAME {c.name} TO {c.source}" for c in renamed),
        f"UPDATE {polled.name} SET new_v = 'c', new_at = now() WHERE id = 2",
    )
    assert polled.poll() == 1
    assert polled.rows() == [(1, "a", None), (2, "c", None)]


@pytest.mark.parametrize(("version", "is_chunked"), [(130012, False), (140000, True)])
def test_a_server_without_scans_of_a_range_is_not_read_in_chunks(
    spark, dsn, monkeypatch, version, is_chunked
):
    """There each chunk would be a scan of the whole table."""
    polled = PolledTable(spark, dsn)
    monkeypatch.setattr(psycopg.ConnectionInfo, "server_version", version)
    login = SourceLogin(dsn=dsn, salt="")
    with polled_snapshot(spark, login, polled.table, needs_lsn=True) as snapshot:
        assert snapshot.has_blocks is is_chunked
