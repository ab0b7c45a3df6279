"""The saved queries are Athena's SQL, and what they show of small lakes is right."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest
import sqlglot

from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.saved_queries import (
    INCOMPLETE,
    Engine,
    as_one_text,
    put_queries,
    saved_queries,
)
from cdclake.plan import Column
from tests.unit.runbooks import blocks
from tests.unit.verify.lakes import create, event, make_table

TABLE = make_table()
QUERIES = saved_queries(TABLE, "lake_db")
# Of Iceberg's metadata tables the columns that are asked for.
METADATA = {
    "files": "content INT, file_size_in_bytes BIGINT",
    "snapshots": "committed_at TIMESTAMP, snapshot_id BIGINT, operation TEXT, summary TEXT",
}
LOG = [
    event("c", 10, 11, id=1, v=1),
    event("c", 10, 11, id=1, v=1, offset=90),  # sent again
    event("u", 20, 21, id=1, v=2),
    event("c", 20, 22, id=2, v=7),
    event("d", 30, 31, id=1),
]
STATE = [
    {"id": 1, "v": 2, "cdc_deleted": True, "cdc_position": "b"},
    {"id": 2, "v": 7, "cdc_deleted": False, "cdc_position": "a"},
]


@pytest.mark.parametrize("what", QUERIES)
def test_athena_parses_it(what):
    [parsed] = sqlglot.parse(QUERIES[what], dialect="athena", error_level=sqlglot.ErrorLevel.RAISE)
    assert isinstance(parsed, sqlglot.exp.Select)


def test_a_fault_would_be_found():
    with pytest.raises(sqlglot.ParseError):
        sqlglot.parse_one(QUERIES["live rows"].replace("WHERE", "WHERE WHERE"), dialect="athena")


def test_the_text_holds_all_of_them_each_by_itself():
    parsed = sqlglot.parse(as_one_text(QUERIES), dialect="athena")
    assert [each.sql("athena", comments=False) for each in parsed if each] == [
        sqlglot.parse_one(query, dialect="athena").sql("athena") for query in QUERIES.values()
    ]


@pytest.mark.parametrize(("page", "query"), blocks("athena"))
def test_so_do_the_runbooks(page, query):
    assert isinstance(sqlglot.parse_one(query, dialect="athena"), sqlglot.exp.Select)


def shown(what: str, columns: str, *values: Any, log: Any = LOG, state: Any = STATE) -> list[Any]:
    """Columns of one query's rows, translated for DuckDB, which has no time to travel in here."""
    query = QUERIES[what].replace('"lake_db".', "")
    query = re.sub(r" FOR TIMESTAMP AS OF \(.*\)", "", query)
    with duckdb.connect() as session:
        create(session, TABLE, log, state)
        for of, declared in METADATA.items():
            session.execute(f'CREATE TABLE "t${of}" ({declared})')
        session.execute('INSERT INTO "t$files" VALUES (0, 5), (0, 200000000), (1, 7)')
        translated = sqlglot.transpile(query, read="athena", write="duckdb")[0]
        selected = f"SELECT {columns} FROM ({translated})"
        return session.execute(selected, list(values)).fetchall()


@pytest.mark.parametrize("what", ["live rows", "live rows as they were an hour ago"])
def test_live_rows_hide_what_was_deleted(what):
    assert shown(what, "id, v") == [(2, 7)]


def test_an_audit_trail_is_of_one_key_and_in_order():
    log = [*LOG, event("t", 40, 41)]
    trail = shown("audit trail of one key", "cdc_op, v", 1, log=log)
    assert trail == [("c", 1), ("c", 1), ("u", 2), ("d", None), ("t", None)]


def test_without_repeats_each_event_is_there_once():
    once = shown("the changelog, each event once", "cdc_lsn, cdc_op, cdc_offset")
    assert sorted(once) == [(11, "c", 90), (21, "u", 21), (22, "c", 22), (31, "d", 31)]


def test_a_row_that_waits_for_a_value_is_listed_until_it_is_there():
    born = event("c", 40, 41, id=3, v=1, big="?")
    moved, sent, gone = (event(op, 50, 51, id=3, v=2, big=big) for op, big in ("u?", "uB", "d?"))
    for log, expected in (
        ([born], [(3, "big")]), ([born, moved], [(3, "big")]), ([born, sent], []),
        ([born, gone], []), ([born, event("t", 60, 61)], []),
    ):  # fmt: skip
        assert shown(INCOMPLETE, "id, waits_for", log=[*LOG, *log]) == expected
    applied = {"id": 3, "v": 1, "cdc_deleted": False, "cdc_position": born["cdc_position"]}
    state = [*STATE, applied]
    assert shown(INCOMPLETE, "id, waits_for", log=[*LOG, born], state=state) == []


def test_health_is_of_files_by_what_they_hold():
    files = shown("files", "content, files, bytes, small")
    assert sorted(files) == [(0, 2, 200_000_005, 1), (1, 1, 7, 1)]
    assert shown("snapshots", "snapshot_id, summary") == []


def test_a_key_of_several_columns_asks_for_each():
    queries = saved_queries(make_table(key=("id", "v")), "lake_db")
    assert 'WHERE ("id" = ? AND "v" = ?) OR "id" IS NULL' in queries["audit trail of one key"]


@pytest.mark.parametrize(
    ("kind", "stored", "asked"),
    [
        ("date", [20_000, 20_000], date(2024, 10, 4)),
        ("numeric(10,2)", ["12.30", "12.3"], Decimal("12.3")),
        ("bytea", ["AQI=", "AQI="], b"\x01\x02"),
        (
            "timestamptz",  # its type in the source was timestamptz(3)
            ["2024-10-04T22:00:00.120Z", "2024-10-04T22:00:00.120000Z"],
            datetime(2024, 10, 4, 22, 0, 0, 120_000, UTC),
        ),
    ],
)
def test_an_audit_trail_takes_the_key_as_the_state_has_it(kind, stored, asked):
    key = Column(source="id", name="id", type=kind)
    table = make_table(columns=(key, *TABLE.columns[1:]))
    log = [
        event(op, n, n, id=value) for n, (op, value) in enumerate(zip("cu", stored, strict=True))
    ]
    queries = saved_queries(table, "lake_db", Engine('"', DUCKDB))
    query = queries["audit trail of one key"].replace('"lake_db".', "")
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        create(session, table, [*log, event("t", 5, 5)])
        trail = session.execute(f"SELECT cdc_op FROM ({query})", [asked])
        assert trail.fetchall() == [("c",), ("u",), ("t",)]


def test_a_column_named_repeat_is_not_that_of_the_query():
    columns = tuple(Column(source=name, name=name, type="integer") for name in ("id", "repeat"))
    table = make_table(columns=columns)
    events = [event("c", 10, 10 + n, id=n, repeat=n) for n in (1, 2)]
    once = saved_queries(table, "lake_db")["the changelog, each event once"]
    latest = put_queries("p", ["id"], "lake_db")["each key once, as it arrived last"]
    with duckdb.connect() as session:
        create(session, table, events)
        session.execute("CREATE TABLE p AS SELECT id, repeat, 0 AS arrived_at FROM t_changes")
        for query in (once, latest):
            query = sqlglot.transpile(
                query.replace('"lake_db".', ""), read="athena", write="duckdb"
            )[0]
            found = session.execute(f"SELECT id, repeat FROM ({query}) ORDER BY 1").fetchall()
            assert found == [(1, 1), (2, 2)]
