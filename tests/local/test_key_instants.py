"""Keys with instants on a real PostgreSQL: the texts that Debezium gives them, by precision."""

from __future__ import annotations

import psycopg
import pytest

from cdclake.erasures import KeyHash
from cdclake.jobs.runtime.source_key import key_by_source
from cdclake.plan import Table
from cdclake.polling import Polling
from cdclake.postgres import bulk_read
from cdclake.postgres.event_values import SESSION
from tests.local.source_database import run
from tests.unit.postgres.tables import declared

pytestmark = pytest.mark.local

# Those of `ZonedTimestamp.toIsoString` in Debezium's jar, by the column's precision.
MOMENT = "2024-01-02 03:04:05.123456+05"
TEXTS = {
    "timestamptz": "2024-01-01T22:04:05.123456Z",
    "timestamptz(6)": "2024-01-01T22:04:05.123456Z",
    "timestamptz(5)": "2024-01-01T22:04:05.12346Z",
    "timestamptz(3)": "2024-01-01T22:04:05.123Z",
    "timestamptz(1)": "2024-01-01T22:04:05.1Z",
    "timestamptz(0)": "2024-01-01T22:04:05Z",
    "seconds": "2024-01-01T22:04:05Z",
    "millis_of_others": "2024-01-01T22:04:05.123Z",
}
ANCIENT, ANCIENT_TEXT = "0044-03-15 01:02:03.5+00 BC", "-0043-03-15T01:02:03.500Z"
DOMAINS = (
    "CREATE DOMAIN seconds AS timestamptz(0)",
    "CREATE DOMAIN millis AS timestamptz(3)",
    "CREATE DOMAIN millis_of_others AS millis",
)


def visits(spelled: str, **changes: object) -> Table:
    """A table whose file may know less of the precision than the source."""
    columns = (("id", "integer"), ("at", spelled), ("seen", spelled + "[]"))
    return declared(*columns, table="visits", name="visits", key=("id", "at"), **changes)


def created(database: str, kind: str, moment: str = MOMENT) -> None:
    run(
        database,
        *DOMAINS,
        f"CREATE TABLE visits (id int, at {kind}, seen {kind}[], PRIMARY KEY (id, at))",
        f"INSERT INTO visits VALUES (1, '{moment}', ARRAY['{moment}', NULL]::{kind}[])",
    )


def loaded(database: str, table: Table) -> list[tuple[object, ...]]:
    names = ", ".join(bulk_read.value_name(i) for i, _ in enumerate(table.columns))
    return run(database, *SESSION, f"SELECT {names} FROM ({bulk_read.rows(table)}) AS r")


@pytest.mark.parametrize("kind", TEXTS)
def test_an_instant_has_as_many_digits_as_the_source_keeps(database: str, kind: str) -> None:
    created(database, kind)
    [(_, at, seen)] = loaded(database, visits("timestamptz"))
    assert at == TEXTS[kind]
    if "(" in kind:  # an array's modifier is the column's own
        assert seen == f'["{TEXTS[kind]}",null]'


def test_an_ancient_instant_is_cut_too(database: str) -> None:
    created(database, "timestamptz(3)", ANCIENT)
    assert loaded(database, visits("timestamptz(3)"))[0][1] == ANCIENT_TEXT


@pytest.mark.parametrize("kind", ["timestamptz", "timestamptz(0)", "timestamptz(3)"])
@pytest.mark.parametrize("spelled", ["timestamptz", "timestamptz(3)"])
def test_a_sought_key_has_the_digest_of_the_event(database: str, kind: str, spelled: str) -> None:
    created(database, kind)
    table = visits(spelled)
    with psycopg.connect(database, autocommit=True) as connection:
        stored = connection.execute("SELECT at::text FROM visits").fetchone()
        assert stored is not None
        key = key_by_source(connection, table, ("1", stored[0]))
    event = {"id": 1, "at": TEXTS[kind]}
    assert key.is_in(event)
    hashed = KeyHash.of(table.name, "pepper")
    assert hashed.digest(key.parts) == hashed.digest([*event.values()])


def test_without_its_table_the_file_says_how_many_digits(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        key = key_by_source(connection, visits("timestamptz(3)"), ("1", MOMENT))
    assert key.parts == [1, TEXTS["timestamptz(3)"]]


def test_polls_write_six_digits_whatever_the_source_keeps(database: str) -> None:
    created(database, "timestamptz(3)")
    polled = visits(
        "timestamptz(3)", delivery="poll", polling=Polling(by="at", every="rate(1 hour)")
    )
    assert loaded(database, polled)[0][1] == "2024-01-01T22:04:05.123000Z"
