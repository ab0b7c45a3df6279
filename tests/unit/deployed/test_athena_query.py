"""Statements that `cdclake sql --engine athena` sends to Athena, against moto."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from moto.athena.models import athena_backends

from cdclake.deployed.athena_query import run_athena_query
from cdclake.errors import InputError


@pytest.fixture
def workgroup() -> Any:
    boto3.client("athena").create_work_group(
        Name="shop-dev", Configuration={"ResultConfiguration": {"OutputLocation": "s3://results/"}}
    )
    return athena_backends["123456789012"]["eu-west-1"]


@pytest.mark.parametrize(
    "query",
    ["DELETE FROM orders", "DROP TABLE orders", "VACUUM orders", "EXECUTE clean", "",
     "OPTIMIZE orders REWRITE DATA USING BIN_PACK", "UNLOAD (SELECT 1) TO 's3://b/x'",
     "INSERT INTO orders SELECT 1", "CREATE TABLE x AS SELECT 1", "FROM orders INSERT INTO x",
     "EXPLAIN ANALYZE DELETE FROM orders", "EXPLAIN ANALYZE VERBOSE INSERT INTO x SELECT 1",
     "EXPLAIN ANALYZE (FORMAT json) DELETE FROM orders", "/* SELECT */ DELETE FROM orders",
     "/* a */ DELETE FROM orders /* b */ SELECT 1", "/* /* */ DELETE FROM orders -- */ SELECT 1",
     "-- a\rDELETE FROM orders\nSELECT 1", "EXPLAIN ANALYZE (FORMAT /*) SELECT 1 */ json) DELETE"],
)  # fmt: skip
def test_a_statement_that_may_write_is_not_sent(workgroup: Any, query: str) -> None:
    with pytest.raises(InputError, match="not a read-only statement"):
        run_athena_query("shop-dev", "lake_db", query)
    assert workgroup.executions == {}


@pytest.mark.parametrize(
    "query",
    ["SELECT 1", "-- a\n/* b */ with x AS (SELECT 1) TABLE x", "(SELECT 1) UNION (SELECT 2)",
     "VALUES 1, 2", "SHOW TABLES", "DESCRIBE orders", "EXPLAIN SELECT 1", "EXPLAIN (SELECT 1)",
     "EXPLAIN (TYPE IO, FORMAT json) SELECT 1", "EXPLAIN ANALYZE VERBOSE SELECT 1"],
)  # fmt: skip
def test_a_read_only_statement_is_sent(workgroup: Any, query: str) -> None:
    run_athena_query("shop-dev", "lake_db", query)
    [sent] = workgroup.executions.values()
    assert sent.query == query
