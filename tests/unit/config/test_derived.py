"""Derived tables in the pipeline file: the analysis of their queries, and their checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.config.derived_sql import SourceColumns, analyze
from cdclake.config.document import Document
from cdclake.config.problems import Problem, Refused
from cdclake.config.resolve import find_problems, load_plan
from cdclake.config.yaml_reader import read_document
from cdclake.plan import Plan

TABLES = [
    SourceColumns("address", ("address_id",), ("address_id", "street", "city_id")),
    SourceColumns("city", ("city_id",), ("city_id", "city", "country_id")),
    SourceColumns("country", ("country_id",), ("country_id", "country")),
]
FILE = """\
version: 1
name: places
source: {{database: places}}
tables:
  public.city:
    key: [city_id]
    columns: {{city_id: integer, city: text, country_id: integer}}
  public.country:
    key: [country_id]
    columns: {{country_id: integer, country: text, secret: {{type: text, exclude: true}}}}
derived:
  {name}:
    sql: {sql}
    key: [{key}]
    partition_by: [{by}]
    format: {format}
"""
JOINED = (
    "SELECT city_id, city, k.country FROM city_current AS c"
    " LEFT JOIN country_current AS k ON k.country_id = c.country_id"
)


def of(sql: str, *key: str) -> dict[str, dict[str, str]]:
    """The source keys of a query with this key."""
    return {name: dict(keys) for name, keys in analyze(sql, TABLES, key).source_keys.items()}


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        (
            "SELECT a.address_id AS id, c.city_id, c.city FROM address_current a"
            " JOIN city_current c ON c.city_id = a.city_id",
            {"address": {"address_id": "id"}, "city": {"city_id": "city_id"}},
        ),
        (  # the country's key is not selected, but equal to a column that is
            "SELECT c.city_id, c.country_id AS at, k.country FROM city_current c"
            " LEFT JOIN country_current k ON k.country_id = c.country_id AND k.country <> 'x'",
            {"city": {"city_id": "city_id"}, "country": {"country_id": "at"}},
        ),
        (
            "SELECT c.city_id, k.country_id FROM city_current c, country_current k"
            " WHERE c.country_id = k.country_id",
            {"city": {"city_id": "city_id"}, "country": {"country_id": "country_id"}},
        ),
        ("SELECT * FROM city_current WHERE city > 'a'", {"city": {"city_id": "city_id"}}),
        (  # a row without a match in one left join has none in the next
            "SELECT a.address_id, a.city_id FROM address_current a"
            " LEFT JOIN city_current c ON a.city_id = c.city_id"
            " LEFT JOIN country_current k ON k.country_id = c.city_id",
            {
                "address": {"address_id": "address_id"},
                "city": {"city_id": "city_id"},
                "country": {"country_id": "city_id"},
            },
        ),
    ],
)
def test_rows_can_be_told_by_the_keys_of_their_sources(
    sql: str, keys: dict[str, dict[str, str]]
) -> None:
    assert of(sql) == keys


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT city FROM city_current",
        "SELECT city_id, upper(city) AS city FROM city_history",
        "SELECT country_id, count(*) AS cities FROM city_current GROUP BY country_id",
        "SELECT city_id, max(city) AS city FROM city_current GROUP BY city_id",
        "SELECT DISTINCT city_id FROM city_current",
        "SELECT city_id FROM city_current LIMIT 5",
        "SELECT city_id, row_number() OVER (ORDER BY city) AS n FROM city_current",
        "SELECT city_id FROM city_current UNION ALL SELECT city_id FROM city_current",
        "SELECT city_id FROM city_current c WHERE EXISTS"
        " (SELECT 1 FROM country_current k WHERE k.country_id = c.country_id)",
        "SELECT city_id FROM city_current WHERE country_id IN (SELECT 1)",
        "WITH x AS (SELECT * FROM city_current) SELECT city_id FROM x",
        "SELECT a.city_id, b.city_id AS other FROM city_current a JOIN city_current b ON true",
        "SELECT c.city_id, k.country_id FROM city_current c"
        " FULL JOIN country_current k ON k.country_id = c.country_id",
        "SELECT c.city_id FROM city_current c LEFT SEMI JOIN country_current k"
        " ON k.country_id = c.country_id",
        "SELECT c.city_id, c.country_id, k.country FROM city_current c LEFT JOIN country_current k"
        " ON k.country_id = c.country_id OR k.country = c.city",
        # Rows without a match have values that are not equal.
        "SELECT a.address_id, a.city_id, k.country FROM address_current a"
        " JOIN city_current c ON c.city_id = a.street LEFT JOIN country_current k"
        " ON k.country_id = a.city_id AND k.country_id = a.street",
        "SELECT a.address_id, k.country_id FROM address_current a"
        " LEFT JOIN country_current k ON k.country_id = a.city_id"
        " JOIN city_current c ON c.city_id = a.city_id",
        "SELECT a.address_id, a.city_id, k.country_id FROM address_current a"
        " JOIN city_current c ON c.city_id = a.street LEFT JOIN country_current k"
        " ON k.country = 'x' AND a.street = a.city_id",
    ],
)
def test_of_other_queries_the_whole_result_is_written(sql: str) -> None:
    assert of(sql) == {}


LEFT = "SELECT {} FROM city_current c LEFT JOIN country_current k ON k.country_id = c.country_id"
BY_OWN = LEFT.format("c.city_id, k.country_id, coalesce(k.country, 'none') AS country")
BY_OTHER = LEFT.format("c.city_id, k.country_id AS own, c.country_id AS at, k.country")


@pytest.mark.parametrize(
    ("sql", "key", "column"),
    [
        (BY_OWN, "city_id", "country_id"),
        (f"{BY_OWN} WHERE c.city > 'a'", "city_id", None),
        (f"{BY_OWN} JOIN address_current a ON a.address_id = c.city_id", "city_id", None),
        (BY_OWN, "country", None),
        (BY_OTHER, "city_id", "own"),
        (BY_OTHER, "country", "at"),
        (f"{BY_OTHER} WHERE k.country IS NULL", "city_id", "at"),
        (f"{BY_OTHER} JOIN address_current a ON a.address_id = c.city_id", "city_id", "at"),
    ],
)
def test_a_left_joined_key_that_a_row_without_a_match_lacks(
    sql: str, key: str, column: str | None
) -> None:
    """A row without a match shows NULL as the joined table's key: only its own key can tell it."""
    shown = of(sql, key).get("country", {}).get("country_id")
    assert shown == column


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT nope FROM city_current", "'nope' could not be resolved"),
        ("SELECT city_id FRM city_current", "not valid SQL"),
        ("SELECT city_id FROM town_current", "'town_current', which is not a relation"),
        ("SELECT city_id FROM other.city_current", "other.city_current"),
        ("SELECT city_id FROM city", "'city', which is not a relation"),
        ("DELETE FROM city_current", "not one SELECT"),
        ("SELECT 1 AS a; SELECT 2 AS b", "not one SELECT"),
        ("SELECT count(*) FROM city_current", "has no name that Glue accepts"),
        ("SELECT city_id AS `City Id` FROM city_current", "has no name that Glue accepts"),
        ("SELECT city_id, city_id FROM city_current", "the column 'city_id' twice"),
        ("SELECT city_id, current_timestamp() AS t FROM city_current", "when it runs"),
        ("SELECT city_id, rand() AS r FROM city_current", "when it runs"),
        ("SELECT city_id, now() AS r FROM city_current", "when it runs"),
        ("SELECT city_id, current_timezone() AS r FROM city_current", "when it runs"),
        ("SELECT city_id, current_database() AS r FROM city_current", "when it runs"),
        ("SELECT city_id, timestamp'now' AS r FROM city_current", "'now' for the time when it"),
        ("SELECT city_id, timestamp_ntz'now' AS r FROM city_current", "'now' for the time"),
        ("SELECT city_id, DATE 'today' AS r FROM city_current", "'today' for the time"),
        ("SELECT city_id, CAST((' Tomorrow ') AS DATE) AS r FROM city_current", "' Tomorrow ' for"),
        ("SELECT city_id, 'now UTC'::timestamp AS r FROM city_current", "'now UTC' for"),
        ("SELECT city_id, to_date('yesterday') AS r FROM city_current", "'yesterday' for"),
        ("SELECT city_id, date_add('today', 1) AS r FROM city_current", "'today' for"),
        ("SELECT city_id FROM city_current WHERE city > 'now'", "'now' for"),
        ("SELECT city_id FROM city_current WHERE city = 'today'", "'today' for"),
        ("SELECT city_id FROM city_current WHERE city IN ('a', 'today')", "'today' for"),
        ("SELECT city_id FROM city_current WHERE city BETWEEN 'a' AND 'today'", "'today' for"),
        ("SELECT city_id, CASE city WHEN 'today' THEN 1 END AS r FROM city_current", "'today' for"),
        ("SELECT city_id, CASE 'now' WHEN city THEN 1 END AS r FROM city_current", "'now' for"),
        (
            "SELECT city_id FROM city_current WHERE CASE city WHEN ('now') THEN 1 END = 1",
            "'now' for",
        ),
        ("SELECT city_id FROM city_current WHERE city = lower('TODAY')", "'TODAY' for"),
        ("SELECT city_id, CAST(trim(coalesce('now')) AS DATE) AS r FROM city_current", "'now' for"),
        ("SELECT city_id, nullif(city, 'today') AS r FROM city_current", "'today' for"),
        ("SELECT city_id, decode(city, 'today', 1) AS r FROM city_current", "'today' for"),
    ],
)
def test_a_query_is_refused(sql: str, message: str) -> None:
    with pytest.raises(Refused) as refused:
        analyze(sql, TABLES, ())
    assert message in refused.value.message
    assert refused.value.remedy


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT city_id, 'today' AS origin FROM city_current",
        "SELECT city_id FROM city_current WHERE city LIKE 'today'",
        "SELECT city_id, CASE WHEN city > 'a' THEN 'now' ELSE 'today' END AS r FROM city_current",
        "SELECT city_id, coalesce(city, 'now') || 'today' AS r FROM city_current",
        "SELECT city_id FROM city_current WHERE city = 'nowhere' OR city = 'today and tomorrow'",
        "SELECT city_id, CASE city WHEN 'a' THEN 'now' ELSE 'today' END AS r FROM city_current",
        "SELECT city_id, replace(city, 'now', '') AS r, split(city, 'now') AS s FROM city_current",
        "SELECT city_id, lower('NOW') AS r, struct('now' AS k) AS s FROM city_current",
        "SELECT city_id, map('now', 1) AS r, named_struct('k', 'now') AS s FROM city_current",
        "SELECT city_id, from_json(city, 'now int') AS r FROM city_current",
        "SELECT city_id FROM city_current WHERE instr(city, 'now') > 0 AND contains(city, 'now')",
        "SELECT city_id FROM city_current WHERE replace(city, 'now', '') = 'a' OR city RLIKE 'now'",
        "SELECT city_id, timestamp'2026-01-01 00:00:00' AS r, DATE 'epoch' AS e FROM city_current",
    ],
)
def test_a_text_that_is_no_time_is_accepted(sql: str) -> None:
    assert of(sql) == {"city": {"city_id": "city_id"}}


def document(tmp_path: Path, **fields: str) -> Document:
    """The file with these fields of its derived table."""
    given = {
        "name": "places",
        "sql": JOINED,
        "key": "city_id",
        "by": "country",
        "format": "iceberg",
    }
    file = tmp_path / "pipeline.yaml"
    file.write_text(FILE.format(**{**given, **fields}))
    return read_document(file)


def problems(tmp_path: Path, **fields: str) -> list[Problem]:
    return find_problems(document(tmp_path, **fields))


def test_a_derived_table_is_in_the_plan(tmp_path: Path) -> None:
    assert problems(tmp_path) == []
    plan = load_plan(tmp_path / "pipeline.yaml")
    [table] = plan.derived
    assert (table.name, table.key, table.partition_by) == ("places", ("city_id",), ("country",))
    assert table.sources == ("city", "country")
    assert table.schedule == "rate(1 hour)"
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    ("fields", "line", "message", "remedy"),
    [
        ({"name": "city"}, 12, "already has 'city'", "rename"),
        ({"name": "country_changes"}, 12, "already has 'country_changes'", "rename"),
        ({"sql": "SELECT secret FROM country_current"}, 13, "could not be resolved", "correct"),
        ({"sql": "SELECT city FROM city"}, 13, "'city', which is", "write `city_current`"),
        ({"key": "city_ids"}, 14, "no column 'city_ids'", "did you mean 'city_id' or"),
        ({"by": "day(nope)"}, 15, "no column 'nope'", "its columns are city_id, city, country"),
        ({"by": "weeks(city)"}, 15, "unknown partition transform 'weeks'", "year(c)"),
        ({"by": "'bucket(4, city)'", "format": "json"}, 15, "is not a column", "write `city`"),
        ({"format": "orc"}, 16, "'orc'", "iceberg"),
    ],
)
def test_a_mistake_is_reported_at_its_line(
    tmp_path: Path, fields: dict[str, str], line: int, message: str, remedy: str
) -> None:
    [problem] = problems(tmp_path, **fields)
    assert (problem.line, message in problem.message) == (line, True), problem
    assert remedy in problem.remedy
