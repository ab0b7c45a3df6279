"""Partition values against those of pyiceberg, and their form in JSON."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types
from pyiceberg.transforms import parse_transform

from cdclake.jobs.iceberg.partition_values import (
    PartitionField,
    in_json,
    of_values,
    partition_of,
    partitions,
    transformed,
)

MOMENTS = [
    datetime(2026, 11, 25, 23, 59, 59, 999999), datetime(1969, 12, 31, 23, 0, 0, 1),
    datetime(1970, 1, 1), datetime(1601, 3, 1, 5),
]  # fmt: skip
SOURCES: dict[str, tuple[Any, Any, list[Any]]] = {
    "int": (pa.int32(), types.IntegerType(), [0, 7, -7, -1, 2**31 - 1]),
    "bigint": (pa.int64(), types.LongType(), [0, 34, -9, 2**62]),
    "string": (pa.string(), types.StringType(), ["", "ice", "berg\U0001f9ca", "ä" * 9]),
    "binary": (pa.binary(), types.BinaryType(), [b"", b"\x00\x01\x02\x03", b"\xff" * 9]),
    "date": (pa.date32(), types.DateType(), [m.date() for m in MOMENTS]),
    "timestamp": (pa.timestamp("us"), types.TimestampType(), MOMENTS),
    "timestamptz": (
        pa.timestamp("us", "UTC"), types.TimestamptzType(),
        [m.replace(tzinfo=UTC) for m in MOMENTS],
    ),
    "decimal": (
        pa.decimal128(9, 2), types.DecimalType(9, 2),
        [Decimal("0.00"), Decimal("14.20"), Decimal("-1.01"), Decimal("1234567.89")],
    ),
    "wide decimal": (
        pa.decimal128(38, 2), types.DecimalType(38, 2),
        [Decimal(f"{sign}12345678901234567890123456789012345.7{n}") for sign in "+-" for n in "89"],
    ),
}  # fmt: skip
TIMES = ("year", "month", "day")
TAKEN = {
    "bucket[16]": tuple(SOURCES),
    "truncate[3]": ("int", "bigint", "string", "binary", "decimal", "wide decimal"),
    "hour": ("timestamp", "timestamptz"),
    **dict.fromkeys(TIMES, ("date", "timestamp", "timestamptz")),
}


def as_number(value: Any) -> Any:
    return (value - date(1970, 1, 1)).days if type(value) is date else value


@pytest.mark.parametrize(
    ("transform", "source"), [(t, s) for t, sources in TAKEN.items() for s in sources]
)
def test_values_are_icebergs(transform: str, source: str) -> None:
    kind, iceberg, values = SOURCES[source]
    found = transformed(pa.array([*values, None], kind), transform).to_pylist()
    theirs = parse_transform(transform).transform(iceberg)
    plain = [_internal(value) for value in values]
    assert [as_number(v) for v in found] == [*map(theirs, plain), None]


# By Iceberg 1.10 itself, whose integers wrap; pyiceberg's have no limit.
EXTREMES = [
    ("truncate[10]", pa.int32(), -(2**31), 2_147_483_646),
    ("truncate[10]", pa.int64(), -(2**63), 2**63 - 2),
    ("truncate[8]", pa.int32(), -(2**31), -(2**31)),
    ("hour", pa.timestamp("us", "UTC"), 9_223_372_000_000_000_000, -1_732_919_519),
    ("hour", pa.timestamp("us"), -210_866_803_200_000_000, -58_574_112),
]


@pytest.mark.parametrize(("transform", "kind", "value", "expected"), EXTREMES)
def test_integers_wrap_as_icebergs(
    transform: str, kind: pa.DataType, value: int, expected: int
) -> None:
    assert transformed(pa.array([value, None], kind), transform).to_pylist() == [expected, None]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_numbers_without_a_partition_are_named(kind: pa.DataType, number: float) -> None:
    rows = pa.table({"price": pa.array([number], kind)})
    field = PartitionField(1000, "price", "price", "identity")
    for divide in (partition_of, partitions):
        with pytest.raises(ValueError, match=f"value {number} of 'price' has no .*`name:`"):
            divide(rows, [field])


def test_a_file_without_rows_has_the_partition_of_null() -> None:
    field = PartitionField(1000, "price", "price", "identity")
    assert partition_of(pa.table({"price": pa.array([], pa.float64())}), [field]) == {1000: None}


def test_truncated_decimals_beyond_their_type_are_named() -> None:
    field = PartitionField(1000, "price_trunc", "price", "truncate[100]")
    rows = pa.table({"price": pa.array([Decimal("-998.99"), None], pa.decimal128(5, 2))})
    assert [p for p, _ in partitions(rows, [field])] == [{1000: "-999.00"}, {1000: None}]
    beyond = pa.table({"price": pa.array([Decimal("-999.99"), None], pa.decimal128(5, 2))})
    with pytest.raises(
        ValueError, match=r"value -999\.99 of 'price' has no partition by 'price_trunc'"
    ):
        partitions(beyond, [field])


def _internal(value: Any) -> Any:
    """A value as pyiceberg holds it."""
    match value:
        case datetime():
            return (
                value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            ) // value.resolution
        case date():
            return as_number(value)
        case _:
            return value


# In the calendar of Java, as PostgreSQL and Iceberg hold them: Python's has the years 1 to 9999.
FAR_DAYS = {
    6_666_000: "+20220-11-21", 2_932_897: "+10000-01-01", 2_932_896: "9999-12-31",
    -719_162: "0001-01-01", -719_528: "0000-01-01", -719_529: "-0001-12-31",
    -735_000: "-0043-08-22", -2_440_588: "-4713-11-24", 2**31 - 1: "+5881580-07-11",
}  # fmt: skip


@pytest.mark.parametrize(("day", "shown"), FAR_DAYS.items())
@pytest.mark.parametrize("transform", ["identity", "day"])
def test_days_of_all_years_are_partitions(transform: str, day: int, shown: str) -> None:
    values = pa.array([day], pa.int32()).cast(pa.date32())
    field = PartitionField(1000, "p", "at", transform)
    rows = pa.table({"at": values})
    assert partition_of(rows, [field]) == {1000: shown}
    [(partition, _)] = partitions(rows, [field])
    assert partition == {1000: shown}


@pytest.mark.parametrize(
    ("micros", "shown"),
    [
        (253_402_300_800_000_001, "+10000-01-01T00:00:00.000001"),
        (-62_135_596_800_000_001, "0000-12-31T23:59:59.999999"),
        (9_223_371_331_200_000_000, "+294247-01-02T00:00:00.000000"),
    ],
)
@pytest.mark.parametrize(("zone", "suffix"), [(None, ""), ("UTC", "+00:00")])
def test_timestamps_of_all_years_are_partitions(
    zone: str | None, suffix: str, micros: int, shown: str
) -> None:
    rows = pa.table({"at": pa.array([micros], pa.int64()).cast(pa.timestamp("us", zone))})
    [(partition, _)] = partitions(rows, [PartitionField(1000, "at", "at", "identity")])
    assert partition == {1000: f"{shown}{suffix}"}
    found = partition_of(rows, [PartitionField(1000, "at", "at", "day")])
    assert found == {1000: shown[: shown.index("T")]}


def test_values_in_json_are_those_of_the_specification() -> None:
    moment = datetime(2017, 11, 16, 22, 31, 8, 5)
    assert in_json(pa.scalar(moment, pa.timestamp("us"))) == "2017-11-16T22:31:08.000005"
    aware = pa.scalar(moment.replace(tzinfo=UTC), pa.timestamp("us", "UTC"))
    assert in_json(aware) == "2017-11-16T22:31:08.000005+00:00"
    assert in_json(pa.scalar(date(2017, 11, 16))) == "2017-11-16"
    assert in_json(pa.scalar(b"\x00\xab")) == "00AB"
    assert in_json(pa.scalar(Decimal("14.20"))) == "14.20"
    assert in_json(pa.scalar(None, pa.string())) is None
    assert in_json(pa.scalar(None, pa.date32())) is None


FIELDS = (
    PartitionField(1000, "a_bucket", "a", "bucket[2]"), PartitionField(1001, "b", "b", "identity")
)  # fmt: skip


def test_rows_are_divided_by_partition() -> None:
    rows = pa.table({"a": [1, 2, 3, 4, 1], "b": ["x", None, "x", "y", "x"]})
    divided = partitions(rows, FIELDS)
    assert sorted(n for _, numbers in divided for n in numbers.tolist()) == [0, 1, 2, 3, 4]
    for partition, numbers in divided:
        part = rows.take(pa.array(numbers))
        assert partition_of(part, FIELDS) == partition
        assert {partition[1001]} == {*part.column("b").to_pylist()}
    [(partition, numbers)] = partitions(rows, ())
    assert (partition, numbers.tolist()) == ({}, list(range(5)))
    assert of_values(FIELDS, {"a": 1, "b": "x"}) == divided[0][0] or len(divided) > 1


def test_rows_of_two_partitions_are_no_file() -> None:
    with pytest.raises(ValueError, match="2 partitions in one file, by b"):
        partition_of(pa.table({"a": [1, 1], "b": ["x", "y"]}), FIELDS)
