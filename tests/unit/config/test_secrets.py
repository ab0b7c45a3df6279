"""Passwords in SQL of the pipeline file: refused in its texts, whatever comes before these."""

from __future__ import annotations

import json

import pytest

from cdclake.config.resolve import find_problems
from cdclake.config.yaml_reader import parse_document

FILE = """\
version: 1
name: shop
source: {{database: shop}}
tables:
  public.t:
    key: [id]
    columns: {{id: integer, password: text}}
    capture: {{poll: {{by: id, query: {query}}}}}
derived:
  copy: {{sql: {sql}, key: [id]}}
"""
READ = "SELECT * FROM public.t"
CLONE = "SELECT id, password FROM t_current"


def refused_lines(query: str = READ, sql: str = CLONE) -> list[int]:
    """The lines of the values that contain a password."""
    text = FILE.format(query=json.dumps(query), sql=json.dumps(sql))
    problems = find_problems(parse_document(text))
    return [each.line for each in problems if "contains a password" in each.message]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM dblink('host=a user=u password=geheim', 'SELECT 1')",
        "-- the customers' rows\nSELECT * FROM dblink('host=a user=u password=geheim', 'SELECT 1')",
        "/* it's */ SELECT * FROM dblink('host=a password=geheim', 'SELECT 1')",
        "SELECT id AS \"it's\", dblink('host=a password=geheim', 'SELECT 1') FROM public.t",
        "SELECT * FROM dblink($$host=a password=geheim$$, 'SELECT 1')",
        "SELECT * FROM dblink($dsn$host=a password=geheim$dsn$, 'SELECT 1')",
        r"SELECT E'it\'s', dblink('postgresql://u:geheim@a/b', 'SELECT 1')",
        "SELECT * FROM dblink('host=a password=geheim",
    ],
)
def test_a_password_in_a_text_of_a_query_is_refused(query: str) -> None:
    assert refused_lines(query=query) == [8]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, r'it\\'s' AS a, 'password=geheim' AS b FROM t_current",
        'SELECT id, "it\'s" AS a, "password=geheim" AS b FROM t_current',
        "SELECT `it's`, 'password=geheim' AS b FROM t_current",
    ],
)
def test_a_password_in_a_text_of_spark_is_refused(sql: str) -> None:
    assert refused_lines(sql=sql) == [10]


@pytest.mark.parametrize(
    "condition",
    ["password = 'x'", "password = id::text -- not the customers'", "password=$$it's$$"],
)
def test_a_column_of_this_name_may_be_compared(condition: str) -> None:
    assert refused_lines(f"{READ} WHERE {condition}", f"{CLONE} WHERE password = 'x'") == []
