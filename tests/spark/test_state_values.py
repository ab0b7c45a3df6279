"""Values of the state as tasks convert them, against the SQL that views and rebuilds use."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from cdclake.debezium.types import parse_type
from cdclake.iceberg.conversions import to_state as in_sql
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.apply.state_values import to_state
from tests.unit.jobs.test_state_values import NO_BASE64

pytestmark = pytest.mark.spark

TEXTS = [
    "0", "-0", "007.50", "-1.005", "123456.78", "1234567.8", "1e2", "NaN", "", " 1", "1.", ".5",
    "1.5\n", "99999999999999999999999999999999999999", "0.000000000000000000000000000000000000001",
]  # fmt: skip
MOMENTS = [
    "2026-11-25T01:02:03Z", "2026-11-25T01:02:03.1Z", "2026-11-25T01:02:03.123456789Z",
    "0001-01-01T00:00:00Z", "-0044-03-15T12:00:00Z", "-4712-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
    "+12345-01-01T00:00:00.5Z", "+294246-01-01T00:00:00Z", "+294277-01-01T00:00:00Z", "infinity",
    "+294246-12-31T23:59:59.999999Z", "+294247-01-01T00:00:00Z", "+294247-01-09T00:00:00Z",
    "2023-02-29T00:00:00Z", "1582-10-10T00:00:00Z", "1969-12-31T23:59:59.999999Z",
]  # fmt: skip
DAYS = [0, -1, 20_000, -2_440_588, -2_440_589, 2_145_042_905, 2_147_483_647, -719_162]
MICROS = [
    0, -1, 10**15, -210_866_803_200_000_000, -210_866_803_200_000_001, 9_223_371_999_999_999_999,
]  # fmt: skip
TIMES = [0, 1, 59_999_999, 86_399_999_999, 86_400_000_000]
BASE64 = ["", "AP8=", "AAECAwQF", *NO_BASE64]
VALUES: dict[str, list[Any]] = {
    "numeric(8,2)": TEXTS, "numeric(38,0)": TEXTS, "numeric(38,38)": TEXTS, "money": TEXTS,
    "timestamptz": MOMENTS, "date": DAYS, "timestamp": MICROS, "time": TIMES, "bytea": BASE64,
    "text": TEXTS,
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_tasks_convert_as_sql_does(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    parsed = parse_type(kind)
    assert parsed is not None
    rows = [(number, value) for number, value in enumerate([*VALUES[kind], None])]
    frame = spark.createDataFrame(rows, f"number int, value {parsed.log}")
    sql = in_sql("value", parsed, SPARK)
    theirs = frame.selectExpr("number", f"{sql} AS value")
    log = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}[parsed.log]
    ours = to_state(pa.array([value for _, value in rows], log), parsed)
    numbers = pa.array(range(len(rows)), pa.int32())
    pq.write_table(pa.table({"number": numbers, "value": ours}), tmp_path / "ours.parquet")
    reader = spark.read.option("datetimeRebaseMode", "CORRECTED")
    mine = reader.parquet(str(tmp_path / "ours.parquet"))
    assert mine.schema["value"].dataType == theirs.schema["value"].dataType
    assert shown(mine) == shown(theirs)


def shown(rows: DataFrame) -> list[Any]:
    """Values as texts: Python has no dates before the year 1."""
    is_binary = rows.schema["value"].dataType.typeName() == "binary"
    text = "hex(value)" if is_binary else "CAST(value AS string)"
    return [row[0] for row in rows.orderBy("number").selectExpr(text).collect()]
