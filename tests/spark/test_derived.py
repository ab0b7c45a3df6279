"""Derived tables: refreshed by changed keys, they equal the query's whole result."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import boto3
import duckdb
import pytest
from moto import mock_aws
from pyspark.sql import SparkSession

from cdclake.derived_table import FileFormat
from cdclake.errors import InputError, TableError
from cdclake.jobs.derived import refresh as refreshing
from cdclake.jobs.derived.source_snapshot import open_source
from cdclake.jobs.reader.file_tables import file_rows
from tests.spark.derived import HALF_EQUAL, JOINED, LEFT_OUT, DerivedLake
from tests.spark.events import Engine
from tests.spark.test_collapse import NOW, OLD, collapse, set_clock

pytestmark = pytest.mark.spark

STREETS = "SELECT a.id AS address_id, a.v AS street FROM {address}_current AS a"


def filled(lake: DerivedLake) -> DerivedLake:
    """Two countries, three cities (one of no country), four addresses."""
    e = lake.country.event
    lake.country.run(e("c", 10, 10, id=1, v="Peru"), e("c", 10, 11, id=2, v="Kenya"))
    lake.city.run(
        e("c", 20, 20, id=1, v="Lima", big="1"), e("c", 20, 21, id=2, v="Nairobi", big="2"),
        e("c", 20, 22, id=3, v="Atlantis", big=None),
    )  # fmt: skip
    lake.address.run(
        e("c", 30, 30, id=1, v="a", big="1"), e("c", 30, 31, id=2, v="b", big="2"),
        e("c", 30, 32, id=3, v="c", big="3"), e("c", 30, 33, id=4, v="d", big="1"),
    )  # fmt: skip
    return lake


def expected(lake: DerivedLake) -> list[tuple[Any, ...]]:
    """The join in Python, over the states."""
    cities, countries = lake.city.state(), lake.country.state()
    rows = []
    for key, (street, city) in lake.address.state().items():
        if city is None or int(city) not in cities:
            continue
        name, country = cities[int(city)]
        at = None if country is None or int(country) not in countries else int(country)
        named = None if at is None else countries[at][0]
        rows.append((key, street, int(city), name, at, named, "test"))
    return sorted(rows, key=repr)


def queried(lake: DerivedLake) -> list[tuple[Any, ...]]:
    """The query's result by Spark, over what the last refresh has read."""
    found = lake.spark.sql(lake.table.sql).collect()
    return sorted((tuple(row) for row in found), key=repr)


@pytest.mark.slow
def test_columns_that_are_equal_in_matched_rows_alone_tell_no_row(spark: SparkSession) -> None:
    lake = filled(DerivedLake(spark, HALF_EQUAL))
    lake.refresh()
    lake.city.run(lake.city.event("u", 90, 90, id=1, v="Cusco", big="1"))
    lake.refresh()
    assert lake.rows() == queried(lake)
    assert (4, "Cusco", None) in lake.rows()


@pytest.mark.slow
def test_a_row_that_a_new_match_removes_leaves_the_table(spark: SparkSession) -> None:
    """It was stored with NULL as the key of the match, which is all that has changed."""
    lake = filled(DerivedLake(spark, LEFT_OUT, key=("city_id",)))
    lake.city.run(lake.city.event("u", 80, 80, id=3, v="Atlantis", big="7"))
    lake.refresh()
    assert (3, None, None) in lake.rows()
    lake.country.run(lake.country.event("c", 90, 90, id=7, v="x"))
    lake.refresh()
    assert lake.rows() == queried(lake) == [(1, 1, "Peru"), (2, 2, "Kenya")]


def test_the_first_refresh_writes_the_whole_result(spark: SparkSession) -> None:
    lake = filled(DerivedLake(spark))
    assert lake.refresh() == 4
    assert lake.rows() == expected(lake)
    assert (1, "a", 1, "Lima", 1, "Peru", "test") in lake.rows()
    assert (3, "c", 3, "Atlantis", None, None, "test") in lake.rows()
    assert lake.refresh() == 0, "nothing has changed"
    assert len(lake.snapshots()) == 1


CHANGES: dict[str, tuple[Callable[[DerivedLake], object], int]] = {
    "a row that others are joined to": (
        lambda lake: lake.city.run(lake.city.event("u", 90, 90, id=1, v="Cusco", big="1")), 2,
    ),
    "a row of the left join goes": (
        lambda lake: lake.country.run(lake.country.event("d", 90, 90, id=1)), 2,
    ),
    "a row of the inner join goes": (
        lambda lake: lake.city.run(lake.city.event("d", 90, 90, id=2)), 1,
    ),
    "a row comes": (
        lambda lake: lake.address.run(lake.address.event("c", 90, 90, id=9, v="z", big="3")), 1,
    ),
    "a row is joined to another": (
        lambda lake: lake.address.run(lake.address.event("u", 90, 90, id=1, v="a", big="2")), 1,
    ),
    "a row of the left join comes": (
        lambda lake: (
            lake.country.run(lake.country.event("c", 90, 90, id=7, v="Poseidonia")),
            lake.city.run(lake.city.event("u", 90, 90, id=3, v="Atlantis", big="7")),
        ),
        1,
    ),
    "joined rows go at once": (
        lambda lake: (
            lake.address.run(lake.address.event("d", 90, 90, id=2)),
            lake.city.run(lake.city.event("d", 91, 91, id=2)),
            lake.country.run(lake.country.event("d", 92, 92, id=2)),
        ),
        1,
    ),
}  # fmt: skip


BY_DEFAULT = {"a row is joined to another"}


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=() if c in BY_DEFAULT else pytest.mark.slow) for c in CHANGES],
)
def test_a_refresh_writes_the_rows_that_changes_concern(spark: SparkSession, case: str) -> None:
    change, concerned = CHANGES[case]
    lake = filled(DerivedLake(spark))
    lake.refresh()
    change(lake)
    assert lake.refresh() == concerned
    assert lake.rows() == expected(lake)
    assert lake.snapshots()[1:] in (["overwrite"], ["append"], ["delete"])


@pytest.mark.slow
def test_changes_that_are_not_applied_are_in_the_result(spark: SparkSession) -> None:
    lake = filled(DerivedLake(spark))
    lake.refresh()
    event = lake.city.event("u", 90, 90, id=1, v="Cusco", big="1")
    lake.city.run(event, apply_now=False)
    assert lake.refresh() == 2
    assert {row[3] for row in lake.rows() if row[2] == 1} == {"Cusco"}


@pytest.mark.slow
def test_a_session_in_another_time_zone_is_refused(spark: SparkSession) -> None:
    """Its views would show the times of changes that are not applied an hour or two late."""
    lake = filled(DerivedLake(spark))
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        with pytest.raises(InputError, match="time zone UTC, but it is Europe/Berlin"):
            open_source(lake.city.lake, lake.sources[1])
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert open_source(lake.city.lake, lake.sources[1]).table.name == lake.names["city"]


@pytest.mark.slow
def test_a_truncate_has_the_table_written_as_a_whole(spark: SparkSession) -> None:
    lake = filled(DerivedLake(spark))
    lake.refresh()
    lake.address.run(lake.address.event("t", 90, 90, id=None))
    assert lake.refresh() == 0
    assert lake.rows() == []


@pytest.mark.slow
def test_a_new_snapshot_of_the_source_has_the_table_written_as_a_whole(
    spark: SparkSession,
) -> None:
    lake = filled(DerivedLake(spark))
    lake.refresh()
    e = lake.address.event
    lake.address.run(e("r", None, 100, id=4, v="D", big="2", epoch=2), epoch=2)
    lake.refresh()
    assert lake.rows() == expected(lake)
    assert [row[:2] for row in lake.rows()] == [(4, "D")]


@pytest.mark.slow
def test_a_changed_query_has_the_table_written_as_a_whole(spark: SparkSession) -> None:
    lake = filled(DerivedLake(spark))
    lake.refresh()
    lake.sql = lake.sql.replace("'test' AS origin", "upper(a.v) AS loud")
    assert lake.refresh() == 4
    assert {row[6] for row in lake.rows()} == {"A", "B", "C", "D"}


@pytest.mark.slow
def test_aggregates_are_written_as_a_whole(spark: SparkSession) -> None:
    lake = filled(DerivedLake(spark))
    lake.sql = "SELECT big AS city_id, count(*) AS addresses FROM {address}_current GROUP BY big"
    lake.key = ("city_id",)
    assert lake.table.source_keys == {}
    lake.refresh()
    lake.address.run(lake.address.event("d", 90, 90, id=4))
    assert lake.refresh() == 3
    assert lake.rows() == [("1", 1), ("2", 1), ("3", 1)]


@pytest.mark.slow
def test_killed_between_commit_and_progress_the_refresh_is_done_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = filled(DerivedLake(spark))
    lake.refresh()
    lake.city.run(lake.city.event("d", 90, 90, id=1))

    def killed(point: str) -> None:
        assert point == "after_derived_commit"
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(refreshing, "reach", killed)
        lake.refresh()
    assert lake.rows() == expected(lake)
    lake.city.run(lake.city.event("c", 91, 91, id=1, v="Lima", big="1"))
    lake.refresh()
    assert lake.rows() == expected(lake)


@pytest.mark.slow
def test_rows_of_one_key_stop_the_table_and_leave_it_as_it_was(spark: SparkSession) -> None:
    lake = filled(DerivedLake(spark))
    lake.refresh()
    lake.key = ("city_id",)
    with pytest.raises(TableError, match=r"2 rows of the query have the same key \(city_id\)"):
        lake.refresh()
    assert lake.rows() == expected(lake)


@pytest.mark.slow
def test_a_changed_row_with_the_key_of_another_stops_the_table(spark: SparkSession) -> None:
    lake = filled(DerivedLake(spark, STREETS, ("street",)))
    lake.refresh()
    before = lake.rows()
    lake.address.run(lake.address.event("u", 90, 90, id=1, v="b", big="1"))
    with pytest.raises(TableError, match=r"2 rows of the query have the same key \(street\)"):
        lake.refresh()
    assert lake.rows() == before
    lake.address.run(lake.address.event("u", 91, 91, id=2, v="a", big="1"))
    lake.refresh()
    assert lake.rows() == [(1, "b"), (2, "a"), (3, "c"), (4, "d")], "they have changed places"


@pytest.mark.slow
def test_the_match_of_a_left_join_comes_alone(spark: SparkSession) -> None:
    lake = filled(DerivedLake(spark))
    lake.city.run(lake.city.event("u", 80, 80, id=3, v="Atlantis", big="7"))
    lake.refresh()
    lake.country.run(lake.country.event("c", 90, 90, id=7, v="Poseidonia"))
    assert lake.refresh() == 1
    assert lake.rows() == expected(lake)


@pytest.mark.slow
def test_the_match_of_a_left_join_changes_the_key(spark: SparkSession) -> None:
    lake = filled(DerivedLake(spark, JOINED.replace("'test'", "coalesce(k.v, 'none')")))
    lake.key = ("address_id", "origin")
    lake.city.run(lake.city.event("u", 80, 80, id=3, v="Atlantis", big="7"))
    lake.refresh()
    lake.country.run(lake.country.event("c", 90, 90, id=7, v="Poseidonia"))
    lake.refresh()
    assert lake.rows() == queried(lake)


@pytest.mark.slow
def test_a_key_of_null_stops_the_table(spark: SparkSession) -> None:
    lake = filled(DerivedLake(spark))
    lake.key = ("address_id", "country_id")
    with pytest.raises(TableError, match=r"NULL in the key \(address_id, country_id\)"):
        lake.refresh()


@pytest.mark.slow
def test_rows_move_between_partitions(spark: SparkSession) -> None:
    lake = filled(DerivedLake(spark, partition_by=("country",)))
    lake.refresh()
    lake.address.run(lake.address.event("u", 90, 90, id=1, v="a", big="2"))
    lake.country.run(lake.country.event("u", 91, 91, id=2, v="Uganda"))
    lake.refresh()
    assert lake.rows() == expected(lake)
    name = lake.address.lake.qualified(lake.table.name)
    spread = lake.spark.sql(f"SELECT partition.country FROM {name}.partitions").collect()
    assert {row[0] for row in spread} >= {"Peru", "Uganda", None}


@pytest.mark.slow
def test_a_row_whose_delete_has_collapsed_leaves_the_table(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, OLD)
    lake = filled(DerivedLake(spark))
    lake.refresh()
    set_clock(monkeypatch, OLD + timedelta(days=1))
    lake.address.run(lake.address.event("d", 90, 90, id=2))
    set_clock(monkeypatch, NOW)
    lake.address.run(lake.address.event("u", 91, 91, id=1, v="new", big="1"))
    collapse(lake.address)
    assert 2 not in {row["id"] for row in lake.address.log()}
    lake.refresh()
    assert lake.rows() == expected(lake)
    lake.address.run(lake.address.event("u", 92, 92, id=1, v="newer", big="1"))
    assert lake.refresh() == 1


EXACT = """
    SELECT id, v, CAST(v AS TIMESTAMP_NTZ) AS local, CAST(v AS TIMESTAMP) AS instant,
           unhex(big) AS raw, CAST(id AS DECIMAL(38, 18)) AS number, CAST(v AS DATE) AS day
    FROM {address}_current
"""


@mock_aws
@pytest.mark.parametrize("kind", ["json", pytest.param("parquet", marks=pytest.mark.slow)])
def test_files_have_exact_values(
    spark: SparkSession, kind: FileFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)  # of a lake that another test has opened
    glue = boto3.client("glue")
    lake = DerivedLake(spark, EXACT, ("id",), format=kind)
    glue.create_database(DatabaseInput={"Name": lake.address.lake.database})
    e, text = lake.address.event, "2026-01-02 09:45:30.123456"
    lake.address.run(
        e("c", 10, 10, id=1, v=text, big="0102FF00"), e("c", 10, 11, id=2, v=None, big=""),
        e("c", 10, 12, id=3, v="1969-12-31 00:00:00.000001", big=None),
        e("c", 10, 13, id=4, v="+12026-01-02 09:45:30.123456", big=None),
        e("c", 10, 14, id=5, v="-0043-03-15 01:02:03.5", big=None),
    )  # fmt: skip
    assert lake.refresh() == 5
    entry = glue.get_table(DatabaseName=lake.address.lake.database, Name=lake.table.name)["Table"]
    select = file_rows(SimpleNamespace(list_objects_v2=lambda **_: {"KeyCount": 1}), entry)
    shown = "id, local::varchar, replace(instant::varchar, '+00', ''), raw, number, day::varchar"
    early, late = "1969-12-31 00:00:00.000001", "12026-01-02 09:45:30.123456"
    ancient = "0044-03-15 (BC) 01:02:03.5"
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        found = session.execute(f"SELECT {shown} FROM ({select}) ORDER BY id").fetchall()
    assert found == [
        (1, text, text, bytes.fromhex("0102FF00"), Decimal(1), "2026-01-02"),
        (2, None, None, b"", Decimal(2), None),
        (3, early, early, None, Decimal(3), "1969-12-31"),
        (4, late, late, None, Decimal(4), "12026-01-02"),
        (5, ancient, ancient, None, Decimal(5), "0044-03-15 (BC)"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "key", "seed"),
    [
        *((JOINED, "address_id", seed) for seed in range(20)),
        *((HALF_EQUAL, "address_id", seed) for seed in range(20, 25)),
        *((LEFT_OUT, "city_id", seed) for seed in range(25, 30)),
    ],
    ids=[*map(str, range(30))],
)
def test_random_changes_end_as_the_whole_result(
    spark: SparkSession, sql: str, key: str, seed: int
) -> None:
    chance, lsn = random.Random(seed), 1000
    lake = filled(DerivedLake(spark, sql, key=(key,)))
    wanted = expected if sql == JOINED else queried
    lake.refresh()
    for _ in range(4):
        for engine in (lake.address, lake.city, lake.country):
            for _ in range(chance.randrange(3)):
                lsn += 1
                change_one(engine, chance, lsn)
        lake.refresh()
        assert lake.rows() == wanted(lake), f"seed {seed}"
    assert lake.snapshots()


def change_one(engine: Engine, chance: random.Random, lsn: int) -> None:
    """One random change of a row that exists, or a new one."""
    key, exists = chance.randrange(1, 6), engine.state()
    if key in exists and chance.random() < 0.4:
        engine.run(engine.event("d", lsn, lsn, id=key))
        return
    linked = chance.choice([None, *map(str, range(1, 6))])
    op = "u" if key in exists else "c"
    name = chance.choice(["x", f"v{lsn}"])
    engine.run(engine.event(op, lsn, lsn, id=key, v=name, big=linked))
