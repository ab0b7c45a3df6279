"""Values of `cdclake sql`: the same texts inside of nested values, and Parquet without rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from cdclake.local.reader.query import _run

ORDER = """
SELECT 123456789012345678.91::DECIMAL(38, 2) AS total, '\\xAB\\x00'::BLOB AS raw,
    'NaN'::DOUBLE AS ratio, TIMESTAMPTZ '2024-01-01 00:00:00.5+00' AS at,
    DATE '2024-02-29' AS "due day", TIMESTAMP '9999-12-31 23:59:59' AS until,
    12::HUGEINT AS n, NULL::DATE AS never, 'TIME' AS word
"""
TEXTS = [
    "123456789012345678.91", "ab00", "NaN", "2024-01-01T00:00:00.5+00:00", "2024-02-29",
    "9999-12-31T23:59:59", 12, None, "TIME",
]  # fmt: skip


def rows_of(query: str) -> Any:
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        return _run(session, query, None).rows


def test_values_have_the_same_texts_inside_of_nested_values() -> None:
    order = f"({ORDER}) AS o"
    assert rows_of(f"FROM {order}") == [TEXTS]
    struct = dict(
        zip(
            ("total", "raw", "ratio", "at", "due day", "until", "n", "never", "word"),
            TEXTS,
            strict=True,
        )
    )
    assert rows_of(f"SELECT o FROM {order}") == [[struct]]
    assert rows_of(f"SELECT [[o], NULL, []] AS l FROM {order}") == [[[[struct], None, []]]]
    assert rows_of(f"SELECT MAP([o.at], [o]) AS m FROM {order}") == [[{TEXTS[3]: struct}]]
    assert rows_of(f"SELECT row(o.at, row(total, until)) AS r FROM {order}") == [
        [[TEXTS[3], [TEXTS[0], TEXTS[5]]]]
    ]
    assert rows_of(f"SELECT [until]::TIMESTAMP[1] AS a FROM {order}") == [[[TEXTS[5]]]]


def test_nested_values_that_are_missing_stay_null() -> None:
    kinds = ("STRUCT(d DATE)", "DATE[]", "MAP(DATE, STRUCT(d DATE))", "STRUCT(d DATE[])[]")
    query = ", ".join(f"NULL::{kind}" for kind in kinds)
    assert rows_of(f"SELECT {query}") == [[None] * len(kinds)]
    assert rows_of("SELECT {'at': NULL::DATE}, [NULL::DATE]") == [[{"at": None}, [None]]]


def test_times_before_christ_are_iso_8601() -> None:
    """Year 0 is 1 BC, as in ISO 8601."""
    query = (
        "SELECT TIMESTAMPTZ '0044-03-15 (BC) 12:00:00.5+00' AS at,"
        " TIMESTAMP '0001-12-31 (BC) 00:00:00' AS until, DATE '4713-01-01 (BC)' AS day,"
        " [DATE '0044-03-15 (BC)', '0044-03-15', NULL] AS days, '-infinity'::TIMESTAMP AS never,"
        " DATE '10001-02-03 (BC)' AS long"
    )
    assert rows_of(query) == [
        [
            "-0043-03-15T12:00:00.5+00:00",
            "0000-12-31T00:00:00",
            "-4712-01-01",
            ["-0043-03-15", "0044-03-15", None],
            "-infinity",
            "-10000-02-03",
        ]
    ]


def test_statement_may_end_with_a_semicolon_and_a_comment() -> None:
    for end in (";", " ;; ", "; -- é; note", " /* a;b */ ; /* c */", " -- only; a comment"):
        assert rows_of(f"SELECT 'é;' AS t{end}") == [["é;"]]


def test_a_union_that_may_be_a_time_is_a_text() -> None:
    query = "SELECT union_value(t := TIMESTAMPTZ '2024-01-01 00:00:00+00') AS u"
    assert rows_of(query) == [["2024-01-01 00:00:00+00"]]


def test_parquet_keeps_every_digit_of_a_sum(tmp_path: Path) -> None:
    file = tmp_path / "sums.parquet"
    query = "SELECT sum(n), [sum(n)] AS l, max(n) AS n FROM (VALUES (9007199254740993)) AS t(n)"
    with duckdb.connect() as session:
        _run(session, query, None, file)
        assert session.execute(f"FROM '{file}'").fetchall() == [
            (9007199254740993, [9007199254740993], 9007199254740993)
        ]
        described = session.execute(f"DESCRIBE FROM '{file}'").fetchall()
    assert [row[:2] for row in described] == [
        ("sum(n)", "DECIMAL(38,0)"), ("l", "DECIMAL(38,0)[]"), ("n", "BIGINT"),
    ]  # fmt: skip
