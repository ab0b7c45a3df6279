"""The bulk load: rows as the connector would write them, of one moment, each of them once."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import MapType

from cdclake import naming
from cdclake.errors import ComponentFailed, TableError
from cdclake.iceberg.merge import loaded_rows
from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.bulk_load.bulk_load import BulkLoad
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.topic_state import TopicState
from cdclake.jobs.iceberg.views import viewed
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.jobs.stream.event_decoder import EventDecoder
from cdclake.plan import Column, Plan, Table
from cdclake.postgres import bulk_read
from cdclake.quality_rule import QualityRule, ValueLimit
from tests.recorded.limits import LIMITS
from tests.recorded.recording import Recording
from tests.spark.bulk import BulkSource, statements
from tests.spark.events import RECORD, Engine, MemoryStore, plan_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# What Debezium does not carry of these rows; the load does. It cuts no values: refused in the file.
OTHERWISE = {
    *((column, int(key)) for column, keys in LIMITS["typed"].items() for key in keys),
    *(("c_cut", id) for id in (1, 3, 4, 101, 103, 104)),
}


@pytest.fixture
def engine(spark, source):
    """One table `id bigint, v text, big text` of 5,000 rows, over many blocks."""
    engine = Engine(spark)
    source.run(
        f"CREATE TABLE {engine.table.name} (id bigint PRIMARY KEY, v text, big text)",
        f"INSERT INTO {engine.table.name} SELECT i, 'v' || i, repeat('b', 500)"
        " FROM generate_series(1, 5000) i",
    )
    return engine


def test_every_type_comes_as_the_connector_writes_it(spark, source):
    recording = Recording.load("types")
    source.run(*statements("types"))
    table = _loadable(recording.plan.table("public.typed"))
    plan = replace(recording.plan, lake_database="cdc", tables=(table,), not_representable="null")
    events = [(r.topic, 0, r.offset, r.key, r.value, None) for r in recording.of_topic(table.topic)]
    decoded = EventDecoder(table, plan).decode(spark.createDataFrame(events, RECORD))
    expected = {row["id"]: row.asDict() for row in decoded.collect()}
    engine = Engine(spark, plan)
    with source.snapshot([table]) as snapshot:
        loaded = source.load(plan, snapshot)
        exact = source.exact_events(plan, snapshot)
        again = {row["id"]: row.asDict() for row in _decoded_again(exact, table, plan)}
    assert (loaded.rows, loaded.refused) == (len(expected), 0)
    found = {row["id"]: row.asDict() for row in engine.log()}
    assert found.keys() == expected.keys() == again.keys()
    columns = [column.name for column in table.columns]
    differ = {
        (name, id)
        for id, row in found.items()
        for name in columns
        if repr(row[name]) != repr(expected[id][name])  # NaN equals itself, -0.0 is no 0.0
    }
    assert differ == OTHERWISE
    for id, row in found.items():
        assert repr([row[n] for n in columns]) == repr([again[id][n] for n in columns])
        assert row[naming.COMMITTED_AT] == again[id][naming.COMMITTED_AT]
    assert _state_differs(engine) == 0


def _state_differs(engine: Engine) -> int:
    """Rows of the state that are not what Spark makes of the changelog."""
    with viewed(engine.lake.read(engine.table.changes)) as view:
        made = engine.spark.sql(loaded_rows(engine.table, view))
        flat = [
            F.to_json(F.struct(column)) if isinstance(kind.dataType, MapType) else F.col(column)
            for column, kind in ((f"`{f.name}`", f) for f in made.schema)
        ]
        state = engine.lake.read(engine.table.name)
        one, other = made.select(*flat), state.select(*made.columns).select(*flat)
        assert other.count() > 0
        return one.exceptAll(other).count() + other.exceptAll(one).count()


def test_hashes_of_every_type_are_those_of_the_connector(spark, source):
    recording = Recording.load("toast")
    about = [sql for sql in statements("toast", before_stream=True) if "masked" in sql]
    source.run("CREATE EXTENSION IF NOT EXISTS citext", *about)
    table = recording.plan.table("public.masked")
    hashed = [c.name for c in table.columns if c.mask == "hash"]
    events = [(r.topic, 0, r.offset, r.key, r.value, None) for r in recording.of_topic(table.topic)]
    decoded = EventDecoder(table, recording.plan).decode(spark.createDataFrame(events, RECORD))
    [read] = decoded.where(f"{naming.OP} = 'r'").collect()
    engine = Engine(spark, replace(recording.plan, lake_database="cdc", tables=(table,)))
    with source.snapshot([table]) as snapshot:
        source.load(engine.plan, snapshot)
    [row] = engine.log()
    assert {name: row[name] for name in hashed} == {name: read[name] for name in hashed}
    assert len(hashed) == 4


def _loadable(table: Table) -> Table:
    """Without the column of a type that is refused with `bulk`."""
    return replace(table, columns=tuple(c for c in table.columns if c.type != "hstore"))


def _decoded_again(loaded: DataFrame, table: Table, plan: Plan) -> list[Row]:
    """The rows by way of the events that quarantine would hold of them."""
    records = loaded.select(
        F.lit(table.topic).alias("topic"),
        F.col(naming.PARTITION).alias("partition"),
        F.col(naming.OFFSET).alias("offset"),
        F.col("cdc__key").alias("key"),
        F.col("cdc__value").alias("value"),
        F.col("cdc__headers").alias("headers"),
    )
    return EventDecoder(table, plan).decode(records).collect()


def test_the_rows_are_those_of_the_slots_consistent_point(engine, source, monkeypatch):
    monkeypatch.setattr(bulk_read, "_BLOCKS_PER_CHUNK", 7)
    name = engine.table.name
    with source.snapshot([engine.table]) as snapshot:
        source.run(
            f"DELETE FROM {name} WHERE id % 3 = 0",
            f"UPDATE {name} SET v = 'later' WHERE id % 3 = 1",
            f"UPDATE {name} SET id = -id WHERE id % 3 = 2",
            f"VACUUM {name}",
        )
        assert len(snapshot.chunks(engine.table)) > 20
        loaded = source.load(engine.plan, snapshot)
    assert (loaded.rows, loaded.refused) == (5000, 0)
    log = engine.log()
    assert {row["id"]: row["v"] for row in log} == {i: f"v{i}" for i in range(1, 5001)}
    assert len({row["cdc_position"] for row in log}) == 5000
    assert {(r["cdc_op"], r["cdc_lsn"], r["cdc_phase"]) for r in log} == {("r", snapshot.lsn, 0)}
    assert engine.state() == {i: (f"v{i}", "b" * 500) for i in range(1, 5001)}


def test_changes_after_the_load_apply_and_the_state_follows_from_the_log(engine, source):
    with source.snapshot([engine.table]) as snapshot:
        source.load(engine.plan, snapshot)
    late = snapshot.lsn + 10
    e = engine.event
    engine.run(e("u", None, late, id=1, v="new", big=...), e("d", None, late + 1, id=2))
    # Of a transaction that was open over the snapshot: a smaller LSN, committed later.
    engine.run(e("u", None, snapshot.lsn - 5, id=3, v="straddler", big=...))
    expected = {i: (f"v{i}", "b" * 500) for i in range(3, 5001)}
    expected |= {1: ("new", "b" * 500), 3: ("straddler", "b" * 500)}
    assert engine.state() == expected
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == expected


def test_a_load_under_the_next_epoch_takes_away_what_is_gone(engine, source):
    """Also what a load left that broke off before it came to the state."""
    with source.snapshot([engine.table]) as snapshot:
        source.load(engine.plan, snapshot)
    source.run(f"DELETE FROM {engine.table.name} WHERE id <= 4990")
    with source.snapshot([engine.table]) as snapshot:
        assert source.load(engine.plan, snapshot, epoch=2).rows == 10
    assert engine.state().keys() == set(range(4991, 5001))
    # What the connector sent of the first epoch, and the stream reads only now.
    engine.run(engine.event("u", None, snapshot.lsn, id=7, v="old", epoch=1), epoch=2)
    assert engine.state().keys() == set(range(4991, 5001))
    rebuild_state(engine.lake, engine.table)
    assert engine.state().keys() == set(range(4991, 5001))


def test_changes_in_a_new_topic_apply_after_a_load_of_a_lost_one(engine, source):
    """The stamp of the load keeps the old topic's id, so that its offsets are not the new one's."""
    engine.place.topic_id = "old"
    engine.run(*(engine.event("u", None, 10, id=id, v="lost", big="b") for id in range(3)))
    with source.snapshot([engine.table]) as snapshot:
        source.load(engine.plan, snapshot, epoch=2)
    engine.stream().accept_topic(TopicState(id="new", first={0: 0}, end={0: 1000}))
    engine.place.topic_id = "new"
    late = engine.event("u", None, snapshot.lsn + 10, id=1, v="late", big=..., epoch=2)
    engine.run(late, epoch=2, offset=0)
    assert engine.state()[1] == ("late", "b" * 500)


def test_what_the_lake_cannot_hold_is_quarantined_whole(spark, source):
    kinds = {"id": "bigint", "amount": "numeric(8,2)", "grid": "integer[]", "t": "timestamp"}
    plan = plan_of(columns=tuple(Column(source=n, name=n, type=t) for n, t in kinds.items()))
    engine = Engine(spark, plan)
    name = engine.table.name
    source.run(
        f"CREATE TABLE {name} (id bigint PRIMARY KEY, amount numeric, grid int[], t timestamp)",
        f"INSERT INTO {name} VALUES (1, 1.25, '{{1,2}}', NULL), (2, 'NaN', NULL, NULL),"
        " (3, 1.001, NULL, NULL), (4, NULL, '{{1,2},{3,4}}', NULL), (5, NULL, NULL, NULL),"
        " (6, NULL, NULL, '294276-12-31')",
    )
    with source.snapshot(plan.tables) as snapshot:
        loaded = source.load(plan, snapshot)
    assert (loaded.rows, loaded.refused) == (2, 4)
    assert [(row["id"], row["grid"]) for row in engine.log()] == [(1, "[1,2]"), (5, None)]
    held = {json.loads(row["key"])["id"]: row for row in engine.quarantined()}
    assert {id: row["reason"].split(":")[0] for id, row in held.items()} == dict.fromkeys(
        (2, 3, 4, 6), "NOT_REPRESENTABLE"
    )
    assert json.loads(held[2]["value"])["after"] == {"id": 2, "amount": "NAN"}
    assert "after" not in json.loads(held[4]["value"])
    # Replay finds the same against them: nothing becomes NULL on the way.
    again = EventDecoder(engine.table, plan).decode(
        engine.lake.read(naming.QUARANTINE).where(f"topic = '{engine.table.topic}'")
    )
    reasons = {row[REFUSAL].split(":")[0] for row in again.collect()}
    assert reasons == {"NOT_REPRESENTABLE", "NO_ROW"}
    with source.snapshot(plan.tables) as snapshot:
        assert source.load(plan, snapshot, epoch=2).refused == 4


def test_rows_that_a_rule_withholds_are_no_faults(spark, source):
    columns = (("id", "bigint"), ("amount", "numeric(8,2)"))
    limit = ValueLimit(column="amount", test="range", low="0")
    plan = plan_of(
        columns=tuple(Column(source=n, name=n, type=t) for n, t in columns),
        checks=(QualityRule(name="range(amount)", kind="rows", limit=limit),),
    )
    engine = Engine(spark, plan)
    source.run(
        f"CREATE TABLE {engine.table.name} (id bigint PRIMARY KEY, amount numeric)",
        f"INSERT INTO {engine.table.name} VALUES (1, 1.25), (2, -1), (3, 1.001), (4, -2)",
    )
    control: Any = MemoryStore()
    refused: dict[str, int] = {}
    leases = Leases(control, naming.LOAD_JOB)
    with source.snapshot(plan.tables) as snapshot:
        bulk = BulkLoad(replace(plan, stop_table_after=1), engine.lake, control, leases, 1)
        assert bulk._load(engine.table, snapshot, refused) == 1
    assert refused == {engine.table.name: 1}  # 3; rules withhold 2 and 4
    bulk._note_refused(refused)
    place = Progress.load(control).table(engine.table.name)
    assert (place.quarantined, place.is_streaming) == (1, True)
    assert len(engine.quarantined()) == 3


def test_a_table_cannot_be_rewritten_while_it_is_loaded(engine, source):
    rewrite = f"ALTER TABLE {engine.table.name} ALTER id TYPE numeric"
    with source.snapshot([engine.table]):
        with pytest.raises(psycopg.errors.LockNotAvailable):
            source.run("SET lock_timeout = '200ms'", rewrite)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            source.run("SET lock_timeout = '200ms'", f"TRUNCATE {engine.table.name}")
        source.run(f"UPDATE {engine.table.name} SET v = v")
    source.run(rewrite)


def test_the_slots_creation_gives_way_to_a_statement_that_waits(engine, source):
    """The creation waits for the transaction, and that for the load's locks."""
    creation_waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
    with ThreadPoolExecutor(1) as thread, psycopg.connect(source.dsn) as migration:
        migration.execute("SELECT pg_current_xact_id()")
        load = thread.submit(source.snapshot([engine.table]).__enter__)
        deadline = time.monotonic() + 60
        while not source.run(creation_waits):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        migration.execute("SET lock_timeout = '40s'")
        migration.execute(f"TRUNCATE {engine.table.name}")
        with pytest.raises(ComponentFailed, match="waits for the bulk load"):
            load.result()
    assert source.run("SELECT 1 FROM pg_replication_slots") == []
    assert source.run(f"SELECT 1 FROM {engine.table.name}") == []


def test_a_load_whose_locks_are_gone_fails(engine, source):
    with source.snapshot([engine.table]) as snapshot:
        source.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND application_name = 'cdclake load' AND state = 'idle in transaction'"
            " AND query NOT LIKE 'CREATE_REPLICATION_SLOT%'"
        )
        with pytest.raises(ComponentFailed, match="refused the bulk load"):
            source.load(engine.plan, snapshot)


def test_a_range_whose_session_ends_is_read_again(engine, spark, source):
    more = "SELECT i, 'v' || i, repeat('b', 1000) FROM generate_series(5001, 100000) i"
    source.run(f"INSERT INTO {engine.table.name} {more}")
    with ThreadPoolExecutor(1) as thread, source.snapshot([engine.table]) as snapshot:
        ended = thread.submit(_end_one_reader, source)
        assert source.load(engine.plan, snapshot).rows == 100_000
        assert ended.result()
    distinct = F.count_distinct("id").alias("ids"), F.sum("id").alias("sum")
    for name in (engine.table.changes, engine.table.name):
        rows = spark.table(f"{naming.CATALOG}.{engine.plan.lake_database}.{name}")
        [found] = rows.agg(F.count("*").alias("rows"), *distinct).collect()
        assert found.asDict() == {"rows": 100_000, "ids": 100_000, "sum": 5_000_050_000}


def _end_one_reader(source: BulkSource) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ended = source.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE state = 'active' AND query LIKE 'COPY %' LIMIT 1"
        )
        if ended:
            return ended == [(True,)]
        time.sleep(0.005)
    return False


def test_a_duplicate_of_a_declared_key_is_one_row_of_the_state(spark, source):
    """Without a primary key nothing keeps keys apart; two rows of one would stop every merge."""
    plan = plan_of(replica_identity="full")
    engine = Engine(spark, plan)
    source.run(
        f"CREATE TABLE {engine.table.name} (id bigint, v text, big text)",
        f"INSERT INTO {engine.table.name} VALUES (1, 'a', 'b'), (1, 'a', 'b'), (2, 'c', NULL)",
    )
    with source.snapshot(plan.tables) as snapshot:
        source.load(plan, snapshot)
    assert engine.state() == {1: ("a", "b"), 2: ("c", None)}


@pytest.mark.parametrize(
    "how", [{}, {"partition_by": ("bucket(4, id)",)}, {"deletes": "soft"}], ids=str
)
@pytest.mark.parametrize("rows", [0, 3])
def test_every_kind_of_state_is_filled(spark, source, how, rows):
    plan = plan_of(**how)
    engine = Engine(spark, plan)
    source.run(
        f"DROP TABLE IF EXISTS {engine.table.name}",
        f"CREATE TABLE {engine.table.name} (id bigint PRIMARY KEY, v text, big text)",
        f"INSERT INTO {engine.table.name} SELECT i, 'v' || i FROM generate_series(1, {rows}) i",
    )
    with source.snapshot(plan.tables) as snapshot:
        assert source.load(plan, snapshot).rows == rows
    expected = {i: (f"v{i}", None) for i in range(1, rows + 1)}
    assert engine.state() == expected
    late = snapshot.lsn + 10
    engine.run(engine.event("c", None, late, id=9, v="new", big=None))
    assert engine.state() == expected | {9: ("new", None)}


def test_a_value_that_the_source_cannot_convert_is_the_reason_of_the_failure(spark, source):
    columns = (("id", "bigint"), ("t", "timestamp"))
    plan = plan_of(columns=tuple(Column(source=n, name=n, type=t) for n, t in columns))
    engine = Engine(spark, plan)
    source.run(
        f"CREATE TABLE {engine.table.name} (id bigint PRIMARY KEY, t text)",
        f"INSERT INTO {engine.table.name} VALUES (1, 'no time')",
    )
    control: Any = MemoryStore()
    bulk = BulkLoad(plan, engine.lake, control, Leases(control, naming.LOAD_JOB), 1)
    failure = pytest.raises(TableError, match="its load failed: invalid input syntax")
    with source.snapshot(plan.tables) as snapshot, failure:
        bulk._load(engine.table, snapshot, {})
    assert engine.log() == []


def test_a_column_whose_rename_is_declared_in_advance_is_loaded(spark, source):
    engine = Engine(spark, plan_of())
    id, v, big = engine.table.columns
    table = replace(engine.table, columns=(id, replace(v, renamed_from=("w",)), big))
    source.run(
        f"CREATE TABLE {table.name} (id bigint PRIMARY KEY, w text, big text)",
        f"INSERT INTO {table.name} VALUES (1, 'a', 'b')",
    )
    control: Any = MemoryStore()
    bulk = BulkLoad(engine.plan, engine.lake, control, Leases(control, naming.LOAD_JOB), 1)
    with source.snapshot([table]) as snapshot:
        assert bulk._load(table, snapshot, {}) == 1
    assert engine.state() == {1: ("a", "b")}
