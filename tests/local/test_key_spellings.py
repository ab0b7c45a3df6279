"""Keys of several spellings on a real PostgreSQL: what the source takes for equal."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from cdclake.errors import InputError
from cdclake.jobs.runtime.key_types import key_types
from cdclake.jobs.runtime.source import connect
from cdclake.jobs.runtime.source_key import equal_pairs, has_row, key_by_source
from cdclake.plan import Table
from cdclake.polling import Polling
from tests.local.source_database import run
from tests.unit.postgres.tables import declared

pytestmark = pytest.mark.local

# By type of the source: the declared type, a stored value, an equal one, another, and whether only
# the source can compare them.
KEYS = {
    "numeric": ("numeric", "1.50", "1.5", "15", False),
    "numeric(9,3)": ("numeric(9,3)", "1.5", "1.50", "15", False),
    "text": ("text", "Ada", "Ada", "ada", False),
    "citext": ("citext", "Ada", "aDA", "Bob", True),
    "of_anyone": ("text", "Ada", "aDA", "Bob", True),
    "of_five": ("varchar(5)", "Ada", "Ada", "ada", False),
    "text COLLATE any_case": ("text", "Ada", "aDA", "Bob", True),
    "interval": ("interval", "1 day", "24 hours", "25 hours", True),
    "jsonb": ("jsonb", '{"a": 1.0}', '{"a": 1}', '{"a": 2}', True),
    "numrange": ("numrange", "[1.0,2)", "[1,2.00)", "[1,3)", True),
    "hstore": ("hstore", "a=>1", "a=>1", "a=>2", False),
}


def keyed(kind: str) -> Table:
    return declared(("id", kind), ("v", "integer"), table="people", name="people", key=("id",))


@pytest.fixture
def source(database: str) -> str:
    run(
        database,
        "CREATE SCHEMA extra",
        "CREATE EXTENSION citext SCHEMA extra",
        "CREATE EXTENSION hstore SCHEMA extra",
        "CREATE DOMAIN of_anyone AS extra.citext",
        "CREATE DOMAIN of_five AS varchar(5)",
        "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2',"
        " deterministic = false)",
    )
    return database


@pytest.mark.parametrize("kind", KEYS)
def test_a_row_is_found_by_every_equal_key(source: str, kind: str) -> None:
    spelled, stored, equal, other, is_asked = KEYS[kind]
    table = keyed(spelled)
    run(
        source,
        "SET search_path = public, extra",
        f"CREATE TABLE people (id {kind} PRIMARY KEY, v int)",
        f"INSERT INTO people VALUES ('{stored}', 1)",
    )
    with psycopg.connect(source, autocommit=True) as connection:
        keys = [key_by_source(connection, table, (word,)) for word in (stored, equal, other)]
        assert [has_row(connection, key) for key in keys] == [True, True, False]
        types = key_types(connection, table)
        assert types["id"].has_several_texts is is_asked
        if is_asked:
            of_lake = [key.parts for key in keys]
            words = [(equal,), (other,)]
            found = set(equal_pairs(connection, {0: types["id"]}, words, of_lake))
            assert found == {(0, 0), (0, 1), (1, 2)}


def test_a_word_that_is_too_long_for_a_domain_is_no_key(source: str) -> None:
    run(source, "CREATE TABLE people (id of_five PRIMARY KEY, v int)")
    with (
        psycopg.connect(source, autocommit=True) as connection,
        pytest.raises(InputError, match="invalid key 'abcdefg' of people"),
    ):
        key_by_source(connection, keyed("varchar(5)"), ("abcdefg",))


def test_a_key_that_a_check_of_its_domain_refuses_is_an_old_one(source: str) -> None:
    run(
        source,
        "CREATE TABLE people (id of_anyone PRIMARY KEY, v int)",
        "INSERT INTO people VALUES ('Ada@x.org', 1)",
        "ALTER DOMAIN of_anyone ADD CHECK (position('@' IN VALUE) > 0)",
    )
    with psycopg.connect(source, autocommit=True) as connection:
        key = key_by_source(connection, keyed("text"), ("test",))
        assert key.parts == ["test"] and not has_row(connection, key)
        kind = key_types(connection, keyed("text"))["id"]
        stored = [["Test"], ["ada@x.org"]]
        pairs = equal_pairs(connection, {0: kind}, [("test",), ("ADA@x.org",)], stored)
        assert set(pairs) == {(0, 0), (1, 1)}


@pytest.mark.parametrize(
    ("kind", "given", "equal", "invalid"),
    [
        ("jsonb", '{"a": 1}', '{"a": 1.0}', "x"),
        ("interval", "1 day", "24 hours", "soon"),
        ("numrange", "[1,2)", "[1.0,2)", "[2,1)"),
        ("of_anyone", "ada", "Ada", "a\0b"),
    ],
)
def test_an_old_key_that_the_type_does_not_take_equals_none(
    source: str, kind: str, given: str, equal: str, invalid: str
) -> None:
    run(source, f"CREATE TABLE people (id {kind} PRIMARY KEY, v int)")
    stored = [[invalid], [equal], [invalid], [invalid], [given], [invalid]]
    with psycopg.connect(source, autocommit=True) as connection:
        types = {0: key_types(connection, keyed("text"))["id"]}
        assert set(equal_pairs(connection, types, [(given,)], stored)) == {(0, 1), (0, 4)}
        assert set(equal_pairs(connection, types, [(given,)], [[invalid]])) == set()
        assert set(equal_pairs(connection, types, [(given,)], [])) == set()


@pytest.mark.parametrize("spelled", ["citext", "text"])
@pytest.mark.parametrize("result", ["id", "id::of_anyone"])
def test_a_key_of_a_query_is_compared_by_its_result(source: str, spelled: str, result: str) -> None:
    polling = Polling(by="v", every="rate(1 day)", query=f"SELECT {result} AS id, v FROM people")
    table = replace(keyed(spelled), delivery="poll", polling=polling)
    run(
        source,
        "CREATE TABLE people (id extra.citext, v int)",
        "INSERT INTO people VALUES ('Ada', 1)",
    )
    login = make_conninfo(source, options="-c search_path=public,extra")
    with connect(login) as connection:
        keys = [key_by_source(connection, table, (word,)) for word in ("ada", "Bob")]
        assert [has_row(connection, key) for key in keys] == [True, False]
        types = {0: key_types(connection, table)["id"]}
        assert types[0].has_several_texts
        assert set(equal_pairs(connection, types, [("ada",)], [["Bob"], ["Ada"]])) == {(0, 1)}
        assert connection.execute("SHOW search_path").fetchone() == ("pg_catalog",)


def test_a_key_of_what_cannot_be_read_is_as_declared(source: str) -> None:
    polling = Polling(by="v", every="rate(1 day)", query="SELECT id, v FROM public.people")
    table = replace(keyed("citext"), delivery="poll", polling=polling)
    with connect(source) as connection:
        for each in (table, keyed("citext")):
            assert key_by_source(connection, each, ("Ada",)).parts == ["Ada"]
        run(source, "CREATE TABLE people (id extra.citext, v int)")
        with psycopg.connect(source) as other:
            other.execute("LOCK TABLE people")
            assert key_by_source(connection, table, ("Ada",)).parts == ["Ada"]
