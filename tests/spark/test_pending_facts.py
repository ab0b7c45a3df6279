"""Facts about pending changes: Arrow and Spark compute the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.jobs.apply.pending_facts import PendingFacts, facts_of
from cdclake.jobs.apply.pending_facts_query import facts_of_rows

pytestmark = pytest.mark.spark

SPARK_TYPES = {
    naming.OP: "string",
    naming.POSITION: "string",
    naming.LSN: "bigint",
    naming.UNAVAILABLE: "array<string>",
    "v": "string",
    "b": "binary",
}
ARROW_TYPES = {"string": pa.string(), "bigint": pa.int64(), "binary": pa.binary()}
ARROW_TYPES["array<string>"] = pa.list_(pa.string())
TRUNCATE = ("t", "01", 10, None, None, None)
CREATION = ("c", "03", 30, None, "ä€", b"\0\xff")
CARRIED = ("c", "04", 40, ["v", "b"], None, None)
UPDATE = ("u", "05", 50, ["b", "a"], "x", None)
DELETION = ("d", "02", 20, None, None, None)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], (0, 0, False, False, (), "", "", None, None)),
        ([TRUNCATE], (1, 3, True, False, (), "", "", 10, None)),
        ([CREATION, UPDATE], (2, 14, False, False, ("a", "b"), "03", "05", 30, None)),
        (
            [TRUNCATE, CREATION, CARRIED, UPDATE, DELETION],
            (5, 23, True, True, ("a", "b", "v"), "02", "05", 10, 20),
        ),
    ],
    ids=["nothing", "a truncate", "rows", "everything"],
)
def test_facts_are_the_same_from_arrow_and_spark(
    spark: SparkSession, changes: list[tuple[Any, ...]], expected: tuple[Any, ...]
) -> None:
    schema = ", ".join(f"{name} {type_}" for name, type_ in SPARK_TYPES.items())
    arrow = pa.schema([(name, ARROW_TYPES[type_]) for name, type_ in SPARK_TYPES.items()])
    rows = [dict(zip(SPARK_TYPES, change, strict=True)) for change in changes]
    facts = PendingFacts(**dict(zip(PendingFacts.__slots__, expected, strict=True)))
    assert facts_of(pa.Table.from_pylist(rows, arrow)) == facts
    assert facts_of_rows(spark.createDataFrame(changes, schema)) == facts
