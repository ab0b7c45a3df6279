"""Polls of a query's result: its types, the operators it uses, and how long it may take."""

import threading
import time
from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

from cdclake.errors import InputError, TableError
from cdclake.jobs.poll import polled_snapshot
from cdclake.jobs.poll.polled_snapshot import PolledSnapshot
from cdclake.jobs.poll.table_poll import TablePoll
from cdclake.jobs.runtime.source import connect
from cdclake.jobs.runtime.source_key import has_row, key_by_source
from cdclake.jobs.verify import source_rows
from cdclake.postgres import bulk_read
from cdclake.postgres.poll_queries import relation, search_path
from cdclake.postgres.polled_sources import check_query
from cdclake.postgres.source import check_polled_tables
from cdclake.verify.statements import Comparable
from tests.local.source_database import run, running_server
from tests.spark.polled_table import PolledTable

pytestmark = pytest.mark.spark

ROW = {"id": "1::bigint", "v": "'a'", "amount": "1.5", "at": "now()"}


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with running_server() as server:
        yield f"{server}/postgres"


def query_of(**changed: str) -> str:
    """A query of one row, with other expressions for some columns."""
    return "SELECT " + ", ".join(f"{text} AS {name}" for name, text in (ROW | changed).items())


@pytest.mark.parametrize(
    ("column", "expression", "kind"),
    [
        ("id", "1.5", "numeric"),
        ("id", "avg(1)", "numeric"),
        ("amount", "1.5::double precision", "double precision"),
        ("at", "localtimestamp", "timestamp without time zone"),
        ("at", "current_date", "date"),
        ("v", "'{a}'::text[]", "text[]"),
        ("v", "B'101'", "bit"),
        ("v", "box '((0,0),(1,1))'", "box"),
    ],
)
def test_a_query_of_other_types_is_refused(spark, dsn, column, expression, kind):
    settings = {"query": query_of(**{column: expression})}
    polled = PolledTable(spark, dsn, settings, create=False)
    with pytest.raises(TableError, match=f"'{column}' is declared .*, but .* returns") as refused:
        polled.poll()
    assert kind in str(refused.value)
    wanted = "AT TIME ZONE 'zone of its writers'" if "time zone" in kind else "::"
    assert wanted in str(refused.value) and f'AS "{column}"`' in str(refused.value)
    with connect(dsn) as connection, pytest.raises(InputError, match="but the query returns"):
        check_polled_tables(connection, polled.plan)


@pytest.mark.parametrize(
    ("query", "message", "remedy"),
    [
        ("SELECT 1::bigint AS id, 'a' AS w, 1.5 AS amount, now() AS at", "column 'v'", "add it"),
        (query_of(v="lower(7)"), r"function lower\(integer\) does not exist", "correct `query:`"),
        (query_of(id="(1 / 0)::bigint"), "division by zero", "correct `query:`"),
    ],
)
def test_a_query_that_cannot_be_read_is_refused(spark, dsn, query, message, remedy):
    polled = PolledTable(spark, dsn, {"query": query}, create=False)
    with connect(dsn) as connection:
        with pytest.raises(InputError, match=message) as refused:
            check_polled_tables(connection, polled.plan)
        assert connection.execute("SHOW search_path").fetchone() == ("pg_catalog",)
    assert remedy in refused.value.remedy


@pytest.mark.slow
def test_equal_types_of_another_spelling_are_polled(spark, dsn):
    polled = PolledTable(
        spark,
        dsn,
        {"query": query_of(v="'a'::varchar(5)", amount="sum(1.25)", at="now()::timestamptz(3)")},
        create=False,
    )
    assert polled.poll() == 1
    assert polled.rows() == [(1, "a", Decimal("1.25"))]


def test_a_number_beyond_the_declared_precision_is_quarantined(spark, dsn):
    polled = PolledTable(spark, dsn, {"query": query_of(amount="1.255")}, create=False)
    assert polled.poll() == 0
    assert polled.progress().refused == 1


@pytest.mark.slow
def test_a_query_has_the_operators_of_its_login(spark, dsn):
    """The columns are of a type of an extension that only the login's search path has."""
    joined = (
        "SELECT a.id, a.email AS v, 0::numeric AS amount, b.at"
        " FROM public.a JOIN public.b ON a.email = b.email"
    )
    polled = PolledTable(spark, dsn, {"query": joined}, create=False)
    polled.run(
        "CREATE SCHEMA extensions",
        "CREATE EXTENSION citext SCHEMA extensions",
        "CREATE TABLE a (id bigint, email extensions.citext)",
        "CREATE TABLE b (email extensions.citext, at timestamptz)",
        "INSERT INTO a VALUES (1, 'Ann@example.org')",
        "INSERT INTO b VALUES ('ann@example.org', now())",
    )
    assert polled.poll() == 0  # as text, they differ
    login = psycopg.conninfo.make_conninfo(dsn, options="-c search_path=public,extensions")
    assert polled.poll(login) == 1
    assert [row[:2] for row in polled.rows()] == [(1, "Ann@example.org")]
    table = polled.table
    with source_rows.session(login, "") as connection:
        side = Comparable("postgres", relation(table), (), search_path(table, is_local=False))
        assert source_rows.PostgresRows(connection).count(side) == 1
    with connect(login) as connection:
        assert has_row(connection, key_by_source(connection, table, ("1",)))
        assert connection.execute("SHOW search_path").fetchone() == ("pg_catalog",)


@pytest.mark.slow
def test_a_poll_may_take_longer_than_the_idle_timeout(spark, dsn, monkeypatch):
    polled = PolledTable(spark, dsn)
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'a')")
    rows = PolledSnapshot.rows

    def slow(*read):
        time.sleep(1)
        return rows(*read)

    monkeypatch.setattr(PolledSnapshot, "rows", slow)
    timeout = "-c idle_in_transaction_session_timeout=500ms"
    assert polled.poll(psycopg.conninfo.make_conninfo(dsn, options=timeout)) == 1


@pytest.mark.slow
def test_a_poll_locks_nothing_while_it_compares_its_rows(spark, dsn, monkeypatch):
    polled = PolledTable(spark, dsn)
    polled.run(f"INSERT INTO {polled.name} (id, v) VALUES (1, 'a')")
    changes = TablePoll._changes

    def emptied(*read):
        polled.run("SET lock_timeout = '200ms'", f"TRUNCATE {polled.name}")
        return changes(*read)

    with monkeypatch.context() as patched:
        patched.setattr(TablePoll, "_changes", emptied)
        assert polled.poll() == 1
    assert polled.rows() == [(1, "a", None)]
    assert polled.poll() == 1
    assert polled.rows() == []


def test_a_statement_that_waits_for_a_poll_ends_it_with_a_report(spark, dsn, monkeypatch):
    """It waits for the poll's lock, and the poll's second session waits behind it."""
    polled = PolledTable(spark, dsn, {"query": "SELECT * FROM public.late"}, create=False)
    polled.run(f"CREATE TABLE late AS {query_of()}")
    truncate = threading.Thread(target=polled.run, args=("TRUNCATE late",))
    sessions = []

    def check(connection, table):
        sessions.append(connection)
        if len(sessions) == 2:
            truncate.start()
            while not run(dsn, "SELECT FROM pg_locks WHERE NOT granted"):
                time.sleep(0.05)
        return check_query(connection, table)

    monkeypatch.setattr(polled_snapshot, "check_query", check)
    monkeypatch.setattr(bulk_read, "LIMIT_WAITS", "SET lock_timeout = '200ms'")
    with pytest.raises(InputError, match="waits for the poll"):
        polled.poll()
    truncate.join()


def test_an_error_of_the_querys_own_function_is_one_of_its_table(spark, dsn):
    polled = PolledTable(spark, dsn, {"query": query_of(v="public.broken()")}, create=False)
    polled.run(
        "CREATE FUNCTION broken() RETURNS text LANGUAGE plpgsql IMMUTABLE"
        " AS $$ BEGIN RAISE 'not today'; END $$"
    )
    with pytest.raises(InputError, match="the source refused a poll: not today"):
        polled.poll()
