"""Keys of several spellings on a real PostgreSQL: what the source takes for equal."""

from __future__ import annotations

import psycopg
import pytest

from cdclake.jobs.runtime.key_types import key_types
from cdclake.jobs.runtime.source_key import equal_pairs, has_row, key_by_source
from cdclake.plan import Table
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
