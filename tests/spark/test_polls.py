"""Polls of a real PostgreSQL: no change is missed, none is stored twice, nothing is invented."""

import hashlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.control_objects import poll_name
from cdclake.errors import InputError, TableError
from cdclake.hudi_copy import HudiCopy
from cdclake.jobs.poll.polled_snapshot import PolledSnapshot
from cdclake.jobs.poll.table_poll import TablePoll
from cdclake.jobs.publish.copied_rows import StateSnapshot
from cdclake.jobs.publish.copy_stamp import CopyStamp, stamp_of
from cdclake.plan import Column
from tests.local.source_database import running_server
from tests.spark.polled_table import COLUMNS, PolledTable

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with running_server("max_prepared_transactions=5") as server:
        yield f"{server}/postgres"


def test_a_poll_reads_what_has_changed_and_a_sweep_what_is_gone(spark, dsn):
    polled = PolledTable(spark, dsn)
    polled.run(f"INSERT INTO {polled.name} (id, v, amount) VALUES (1, 'a', 1.5), (2, 'b', 2)")
    assert polled.poll() == 2
    assert polled.poll() == 0
    polled.run(
        f"UPDATE {polled.name} SET v = 'a2', at = now() WHERE id = 1",
        f"UPDATE {polled.name} SET v = 'a3', at = now() WHERE id = 1",
        f"DELETE FROM {polled.name} WHERE id = 2",
        f"INSERT INTO {polled.name} (id, v) VALUES (3, 'c')",
    )
    assert polled.poll() == 3
    assert polled.rows() == polled.source_rows()
    assert polled.events() == [
        (1, "r", "a"), (2, "r", "b"), (2, "d", None), (1, "r", "a3"), (3, "r", "c"),
    ]  # fmt: skip
    polled.run(f"INSERT INTO {polled.name} (id, v, amount) VALUES (2, 'b', 2)")
    assert polled.poll() == 1
    assert polled.rows() == polled.source_rows()


@pytest.mark.slow
def test_a_copy_of_a_polled_table_is_given_the_keys_of_each_later_poll(spark, dsn):
    polled = PolledTable(spark, dsn)
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    polled.poll()
    first, opened = stamped(polled)
    assert opened.whole().count() == 3
    polled.run(
        f"UPDATE {polled.name} SET v = 'a2', at = now() WHERE id = 1",
        f"DELETE FROM {polled.name} WHERE id = 2",
    )
    assert polled.poll() == 2
    second, opened = stamped(polled)
    assert second.through > first.through
    changed = opened.since(first)
    assert changed is not None
    rows = changed.orderBy("id").select("id", naming.OP, "v").collect()
    assert [tuple(row) for row in rows] == [(1, "r", "a2"), (2, "d", None)]
    nothing = opened.since(second)
    assert nothing is not None and nothing.isEmpty()


def stamped(polled: PolledTable) -> tuple[CopyStamp, StateSnapshot]:
    """The state as it is, and the stamp that a copy of it gets."""
    opened = StateSnapshot.open(polled.lake, polled.table)
    assert opened is not None
    copy = HudiCopy(
        name="copy", table=polled.name, type="cow", partition_by=None, schedule="rate(1 hour)"
    )
    return stamp_of(copy, polled.table, opened.applied, erasure=""), opened


@pytest.mark.slow
def test_a_reload_during_a_sweep_deletes_no_row(spark, dsn):
    """A snapshot from before the reload sees neither the old rows nor the new ones."""
    polled = PolledTable(spark, dsn)
    insert = f"INSERT INTO {polled.name} VALUES (1, 'a', 1, now()), (2, 'b', 2, now())"
    # Where a default is shown, PostgreSQL 17 locks the table: the poll would wait at the catalog.
    polled.run(f"ALTER TABLE {polled.name} ALTER at DROP DEFAULT", insert)
    polled.poll()
    with ThreadPoolExecutor() as pool, polled.transaction() as reload:
        reload.execute(f"TRUNCATE {polled.name}")
        reload.execute(insert)
        poll = pool.submit(polled.poll)
        await_lock(polled)
        reload.commit()
        assert poll.result() == 2
    assert [op for _, op, _ in polled.events()] == ["r"] * 4
    assert polled.rows() == polled.source_rows()


def await_lock(polled: PolledTable) -> None:
    """Wait until a session waits for a lock on the table."""
    waits = f"SELECT FROM pg_locks WHERE NOT granted AND relation = '{polled.name}'::regclass"
    with psycopg.connect(polled.dsn, autocommit=True) as connection:
        deadline = time.monotonic() + 30
        while connection.execute(waits).fetchone() is None:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.slow
def test_a_poll_gives_way_to_a_truncate_that_waits_for_it(spark, dsn, monkeypatch):
    """The tasks wait behind the TRUNCATE, which waits for the lock that is kept for them."""
    polled = PolledTable(spark, dsn)
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'a')")
    polled.poll()
    rows = PolledSnapshot.rows
    with ThreadPoolExecutor() as pool:
        truncates = []

        def overtaken(*read):
            truncates.append(pool.submit(polled.run, f"TRUNCATE {polled.name}"))
            await_lock(polled)
            return rows(*read)

        with monkeypatch.context() as patched:
            patched.setattr(PolledSnapshot, "rows", overtaken)
            with pytest.raises(PythonException, match="rewrites or empties a table waits"):
                polled.poll()
        truncates[0].result()
    assert polled.events() == [(1, "r", "a")]
    assert polled.poll() == 1
    assert polled.rows() == []


def test_a_poll_that_loses_its_lock_stores_nothing(spark, dsn, monkeypatch):
    polled = PolledTable(spark, dsn)
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'a')")
    read_and_quarantined = TablePoll._quarantine

    def unlocked(*read):
        polled.run(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE pid <> pg_backend_pid()"
            f" AND relation = '{polled.name}'::regclass"
        )
        return read_and_quarantined(*read)

    with monkeypatch.context() as patched:
        patched.setattr(TablePoll, "_quarantine", unlocked)
        with pytest.raises(InputError, match="terminating connection"):
            polled.poll()
    assert polled.events() == []
    assert polled.poll() == 1


@pytest.mark.slow
def test_without_sweeps_a_deleted_row_stays_and_only_changed_rows_are_read(spark, dsn):
    polled = PolledTable(spark, dsn, {"deletes": "none"})
    polled.run(f"INSERT INTO {polled.name} VALUES (1, 'old', 1, '2020-01-01'), (2, 'b', 2, now())")
    assert polled.poll() == 2
    polled.run(
        f"UPDATE {polled.name} SET v = 'without its time' WHERE id = 1",
        f"DELETE FROM {polled.name} WHERE id = 2",
        f"INSERT INTO {polled.name} VALUES (3, 'c', 3, now())",
    )
    assert polled.poll() == 1
    assert [row[:2] for row in polled.rows()] == [(1, "old"), (2, "b"), (3, "c")]


@pytest.mark.slow
def test_a_transaction_that_was_open_over_two_polls_is_read_when_it_has_committed(spark, dsn):
    polled = PolledTable(spark, dsn, {"deletes": "none"})
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'a')")
    with polled.transaction() as late:
        polled.poll()
        late.execute(f"INSERT INTO {polled.name} (id, v) VALUES (2, 'late')")
        polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (3, 'c')")
        assert polled.poll() == 1
    assert polled.poll() == 1
    assert polled.rows() == polled.source_rows()


@pytest.mark.slow
def test_a_prepared_transaction_holds_the_bound_back(spark, dsn):
    polled = PolledTable(spark, dsn, {"deletes": "none"})
    polled.poll()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("BEGIN")
        connection.execute(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'prepared')")
        connection.execute("PREPARE TRANSACTION 'p'")
        before = polled.progress().bound
        for _ in range(2):
            polled.poll()
        assert polled.progress().bound == before
        connection.execute("COMMIT PREPARED 'p'")
    assert polled.poll() == 1
    assert polled.rows() == polled.source_rows()


@pytest.mark.slow
def test_a_poll_that_dies_before_it_is_remembered_changes_nothing_twice(spark, dsn, monkeypatch):
    polled = PolledTable(spark, dsn)
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'a')")
    polled.poll()
    polled.run(f"UPDATE {polled.name} SET v = 'a2', at = now()")
    polled.poll_and_die(monkeypatch)
    polled.run(f"UPDATE {polled.name} SET v = 'a3', at = now()")
    assert polled.poll() == 1
    assert polled.events() == [(1, "r", "a"), (1, "r", "a2"), (1, "r", "a3")]
    assert polled.rows() == polled.source_rows()


@pytest.mark.slow
def test_a_row_that_cannot_be_stored_is_quarantined_once_and_read_when_it_is_corrected(spark, dsn):
    polled = PolledTable(spark, dsn)
    polled.run(f"INSERT INTO {polled.name} (id, amount) VALUES (1, 'NaN'), (2, 5)")
    for newly in (1, 0):
        polled.poll()
        assert (polled.progress().refused, polled.metrics.quarantined) == (1, newly)
    quarantine = polled.lake.read(naming.QUARANTINE).where(F.col("table") == polled.name)
    assert [row["reason"].split(":")[0] for row in quarantine.collect()] == ["NOT_REPRESENTABLE"]
    polled.run(f"UPDATE {polled.name} SET amount = 7, at = now() WHERE id = 1")
    assert polled.poll() == 1
    assert polled.rows() == polled.source_rows()
    polled.run(f"UPDATE {polled.name} SET amount = 'NaN', at = now() WHERE id = 1")
    polled.poll()
    assert [row[0] for row in polled.rows()] == [1, 2]  # as it was: no delete is invented


@pytest.mark.slow
def test_rows_with_the_same_key_are_refused_as_a_whole(spark, dsn):
    rows = "(VALUES ('a'), ('b')) AS t (v)"
    query = f"SELECT 1::bigint AS id, v, 1.5 AS amount, now() AS at FROM {rows}"
    polled = PolledTable(spark, dsn, {"query": query}, create=False)
    with pytest.raises(TableError, match=r"2 rows of public\..* have the same key \(id\)"):
        polled.poll()
    assert polled.events() == []


@pytest.mark.slow
def test_the_result_of_a_query_is_polled_like_a_table(spark, dsn):
    orders = PolledTable(spark, dsn)
    orders.run(f"INSERT INTO {orders.name} (id, v, amount) VALUES (1, 'a', 1), (2, 'b', 2)")
    joined = (
        f"SELECT a.id, a.v || b.v AS v, b.amount, greatest(a.at, b.at) AS at"
        f" FROM public.{orders.name} AS a JOIN public.{orders.name} AS b USING (id)"
    )
    polled = PolledTable(spark, dsn, {"query": joined}, create=False)
    assert polled.poll() == 2
    orders.run(f"UPDATE {orders.name} SET v = 'c', at = now() WHERE id = 2")
    assert polled.poll() == 1
    assert [row[:2] for row in polled.rows()] == [(1, "aa"), (2, "cc")]


def test_a_login_that_sees_no_other_sessions_is_refused_with_the_grant(spark, dsn):
    polled = PolledTable(spark, dsn)
    polled.run(
        "CREATE ROLE blind LOGIN PASSWORD 'blind'", f"GRANT SELECT ON {polled.name} TO blind"
    )
    blind = psycopg.conninfo.make_conninfo(dsn, user="blind", password="blind")
    with pytest.raises(TableError, match="cannot see when") as refused:
        polled.poll(blind)
    assert 'GRANT pg_read_all_stats TO "blind";' in str(refused.value)
    polled.run("GRANT pg_read_all_stats TO blind", f"INSERT INTO {polled.name} (id) VALUES (1)")
    assert polled.poll(blind) == 1


@pytest.mark.slow
def test_after_another_writer_a_poll_reads_everything_again(spark, dsn):
    polled = PolledTable(spark, dsn, {"sweep_every": "rate(1 day)"})
    polled.run(f"INSERT INTO {polled.name} VALUES (1, 'old', 1, '2020-01-01')")
    polled.poll()
    stored = polled.progress()
    polled.control.write(
        poll_name(polled.name), replace(stored, ingested=stored.ingested - 1).to_json()
    )
    polled.run(f"UPDATE {polled.name} SET v = 'by the log'")
    assert polled.poll() == 1
    assert polled.poll() == 0
    assert polled.rows() == polled.source_rows()


@pytest.mark.slow
def test_a_new_column_gets_the_values_of_rows_that_were_not_written_since(spark, dsn):
    polled = PolledTable(spark, dsn, {"deletes": "none"})
    polled.run(
        f"ALTER TABLE {polled.name} ADD note text",
        f"INSERT INTO {polled.name} VALUES (1, 'a', 1, '2020-01-01', 'noted')",
    )
    polled.poll()
    columns = (*COLUMNS, Column(source="note", name="note", type="text"))
    polled.plan = replace(polled.plan, polled=(replace(polled.table, columns=columns),))
    assert polled.poll() == 1
    [row] = polled.lake.read(polled.name).select("v", "note").collect()
    assert tuple(row) == ("a", "noted")


@pytest.mark.slow
def test_values_and_masks_are_spelled_as_in_events(spark, dsn):
    masked = Column(source="v", name="v", type="text", mask="hash")
    polled = PolledTable(spark, dsn)
    polled.plan = replace(
        polled.plan,
        polled=(replace(polled.table, columns=(COLUMNS[0], masked, *COLUMNS[2:])),),
    )
    polled.run(
        f"INSERT INTO {polled.name} (id, v, amount) VALUES (1, 'secret', 1.10), (2, NULL, 0)"
    )
    polled.poll()
    digest = hashlib.sha256(b"saltsecret").hexdigest()
    assert [row[1] for row in polled.rows()] == [digest, None]
    log = polled.lake.read(polled.table.changes).select(naming.PHASE, naming.PARTITION)
    assert [tuple(row) for row in log.collect()] == [(2, -3)] * 2


@pytest.mark.slow
def test_a_softly_deleted_row_is_deleted_once_and_comes_back_unchanged(spark, dsn):
    polled = PolledTable(spark, dsn)
    polled.plan = replace(polled.plan, polled=(replace(polled.table, deletes="soft"),))
    insert = f"INSERT INTO {polled.name} VALUES (1, 'a', 1, '2020-01-01')"
    polled.run(insert)
    polled.poll()
    polled.run(f"DELETE FROM {polled.name}")
    assert [polled.poll(), polled.poll()] == [1, 0]
    assert polled.rows() == []
    polled.run(insert)
    assert polled.poll() == 1
    assert polled.rows() == polled.source_rows()
