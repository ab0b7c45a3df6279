"""Polls of rows whose transactions the source does not show: hidden ones, foreign tables."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from cdclake.errors import InputError, TableError
from cdclake.postgres.source import check_polled_tables
from tests.local.source_database import running_server
from tests.spark.polled_table import PolledTable

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with running_server() as server:
        yield f"{server}/postgres"


@pytest.mark.parametrize("is_shown_again", [False, True])
def test_a_session_that_hides_its_transaction_holds_the_bound(spark, dsn, is_shown_again):
    polled = PolledTable(spark, dsn, {"deletes": "none"})
    polled.poll()
    before = polled.progress().bound
    with polled.transaction() as late:
        late.execute("SET LOCAL track_activities = off")
        late.execute(f"INSERT INTO {polled.name} VALUES (1, 'late', 1, now() - interval '1 hour')")
        if is_shown_again:
            late.execute("SET LOCAL track_activities = on")
        assert polled.poll() == 0
        assert polled.progress().bound == before
    polled.poll()
    assert polled.progress().bound > before


@pytest.fixture(scope="module")
def remote(dsn) -> str:
    """Another database of the server, whose tables `dsn` reads as foreign tables."""
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (
            "CREATE DATABASE remote",
            "CREATE EXTENSION postgres_fdw",
            "CREATE SERVER remote FOREIGN DATA WRAPPER postgres_fdw OPTIONS"
            f" (host '{parts['host']}', port '{parts['port']}', dbname 'remote')",
            "CREATE USER MAPPING FOR CURRENT_USER SERVER remote OPTIONS"
            f" (user '{parts['user']}', password '{parts['password']}')",
        ):
            connection.execute(statement)
    return psycopg.conninfo.make_conninfo(dsn, dbname="remote")


@pytest.mark.parametrize("kind", ["table", "view", "query", "partition"])
@pytest.mark.slow
def test_polls_of_foreign_tables_need_an_overlap(spark, dsn, remote, kind):
    far = PolledTable(spark, remote)
    settings: dict[str, Any] = {"sweep_every": "rate(1 day)"}
    if kind == "query":
        settings |= {"query": f"SELECT * FROM public.{far.name}",
                     "reads": (("public", far.name),)}  # fmt: skip
    polled = PolledTable(spark, dsn, settings, create=False)
    columns = "(id bigint, v text, amount numeric(6,2), at timestamptz)"
    foreign = f"SERVER remote OPTIONS (table_name '{far.name}')"
    name = {"table": polled.name, "query": far.name}.get(kind, f"far_{polled.name}")
    parted = f"PARTITION OF {polled.name} DEFAULT" if kind == "partition" else columns
    if kind == "partition":
        polled.run(f"CREATE TABLE {polled.name} {columns} PARTITION BY LIST (id)")
    polled.run(f"CREATE FOREIGN TABLE {name} {parted} {foreign}")
    if kind == "view":
        polled.run(f"CREATE VIEW {polled.name} AS SELECT * FROM {name}")
    with pytest.raises(TableError, match=f"reads the foreign table public.{name}") as refused:
        polled.poll()
    assert "overlap_minutes" in str(refused.value)
    with psycopg.connect(dsn, autocommit=True) as connection:
        with pytest.raises(InputError, match="foreign table"):
            check_polled_tables(connection, polled.plan)
        overlapping = replace(polled.table.poll, overlap_minutes=15)
        polled.plan = replace(polled.plan, polled=(replace(polled.table, polling=overlapping),))
        check_polled_tables(connection, polled.plan)
    if kind == "table":
        polled.poll()
        far.run(f"INSERT INTO {far.name} VALUES (1, 'late', 1, now() - interval '5 minutes')")
        assert polled.poll() == 1
        assert polled.rows() == far.source_rows()
