"""A bulk load's statements on a real PostgreSQL: chunks, keys, and the rights of our role."""

import psycopg
import pytest

from cdclake.plan import Table
from cdclake.postgres import bulk_read
from cdclake.postgres.event_values import SESSION
from tests.local.source_database import OWNER, PASSWORD, proposed, role_dsn, run
from tests.unit.postgres.tables import declared

pytestmark = pytest.mark.local

ROWS = "SELECT i, repeat('b', 500) FROM generate_series(1, 5000) AS i"
TABLES = {
    "plain": "CREATE TABLE t (id int, b text)",
    "partitioned": "CREATE TABLE t (id int, b text) PARTITION BY RANGE (id);"
    " CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (0) TO (100);"
    " CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (100) TO (10000)",
    "inherited": "CREATE TABLE t (id int, b text); CREATE TABLE child () INHERITS (t);"
    f" INSERT INTO child {ROWS}",
}


def of(name: str, *key: str) -> Table:
    return declared(
        *((column, "integer") for column in (*key, "other")), table=name, key=key or ("other",)
    )


@pytest.mark.parametrize("kind", TABLES)
def test_every_row_is_in_one_chunk(database, monkeypatch, kind):
    monkeypatch.setattr(bulk_read, "_BLOCKS_PER_CHUNK", 10)
    run(database, *TABLES[kind].split("; "), f"INSERT INTO t {ROWS}")
    table = declared(("id", "integer"), table="t")
    [[blocks]] = run(database, bulk_read.blocks(table))
    chunks = bulk_read.chunks(blocks)
    assert len(chunks) > 30
    found = [
        row[0]
        for chunk in chunks
        for row in run(database, f"SELECT c0 FROM ({bulk_read.rows(table)}) AS r WHERE {chunk}")
    ]
    assert sorted(found) == sorted(row[0] for row in run(database, "SELECT id FROM t"))
    assert run(database, bulk_read.count(table)) == [(len(found),)]


def test_a_chunk_is_read_by_its_blocks_alone(database):
    run(database, TABLES["plain"], f"INSERT INTO t {ROWS}")
    rows = bulk_read.rows(declared(("id", "integer"), table="t"))
    chunk = bulk_read.chunks(10**6)[3]
    [[plan], *_] = run(database, f"EXPLAIN SELECT c0 FROM ({rows}) AS source_rows WHERE {chunk}")
    assert plan.startswith("Tid Range Scan")


def test_an_empty_table_is_one_chunk(database):
    run(database, TABLES["plain"])
    [[blocks]] = run(database, bulk_read.blocks(declared(("id", "integer"), table="t")))
    assert bulk_read.chunks(blocks) == ["true"]


def test_only_an_index_that_always_holds_keeps_keys_apart(database):
    run(
        database,
        'CREATE TABLE t (a int, "b\'x" int, z int, c int UNIQUE, d int UNIQUE DEFERRABLE,'
        ' PRIMARY KEY ("b\'x", a) INCLUDE (z))',
        "CREATE UNIQUE INDEX ON t (z) WHERE z > 1",
        "CREATE UNIQUE INDEX ON t ((c + 1))",
    )
    keys = [("a", "b'x"), ("b'x", "a"), ("c",), ("a",), ("z",), ("d",), ("a", "b'x", "z")]
    found = {key: run(database, bulk_read.unique_indexes(of("t", *key)))[0][0] for key in keys}
    assert [key for key, count in found.items() if count] == keys[:3]


def test_our_role_reads_the_declared_columns_and_no_other(database, tmp_path):
    from cdclake.local.lake.source import prepare_source

    run(
        database,
        "CREATE TABLE t (id int PRIMARY KEY, v text, secret text)",
        "INSERT INTO t VALUES (1, 'v', 's')",
    )
    plan = proposed(
        database,
        tmp_path / "p.yaml",
        lambda text: text.replace("secret: text", "secret: {exclude: true}").replace(
            "source:\n", "source:\n  snapshot: {mode: bulk}\n"
        ),
    )
    assert plan.snapshot_mode == "bulk" and plan.tables[0].excluded == ("secret",)
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    dsn = role_dsn(database, plan)
    rows = (
        f"SELECT c0, c1 FROM ({bulk_read.rows(plan.tables[0])}) AS r WHERE cdc__place IS NOT NULL"
    )
    assert run(dsn, *SESSION, bulk_read.lock_against_rewrites(plan.tables[0]), rows) == [(1, "v")]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(dsn, "SELECT secret FROM t")
