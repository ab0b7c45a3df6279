"""Values of the state, as Arrow converts them; tests/spark/test_state_values.py asks Spark."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from cdclake.debezium.field_values import holds
from cdclake.debezium.types import parse_type
from cdclake.iceberg.conversions import is_representable
from cdclake.iceberg.conversions import to_state as in_sql
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.apply.state_values import to_state

NO_BASE64 = ("é", "café", "AP8", "AP8=\n", "ABCD=", "ABCD====", "====", "A B=", "AP8=AP8=")


def converted(kind: str, *values: Any) -> list[Any]:
    parsed = parse_type(kind)
    assert parsed is not None
    log = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64()}[parsed.log]
    result = to_state(pa.array([*values, None], log), parsed)
    assert result[-1].as_py() is None
    if pa.types.is_timestamp(result.type) or pa.types.is_date(result.type):
        whole = pa.int64() if pa.types.is_timestamp(result.type) else pa.int32()
        return list(result.cast(whole).to_pylist()[:-1])
    return list(result.to_pylist()[:-1])


def test_decimals_are_exact_or_null() -> None:
    found = converted(
        "numeric(6,2)", "1.5", "-0012.3400", "9999.99", "10000", "1.005", "NaN", "1e2"
    )
    exact = [Decimal("1.50"), Decimal("-12.34"), Decimal("9999.99")]
    assert found == [*exact, None, None, None, None]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-25T01:02:03.123456Z", datetime(2026, 11, 25, 1, 2, 3, 123456, UTC)),
        ("2026-11-25T01:02:03.123456789Z", datetime(2026, 11, 25, 1, 2, 3, 123456, UTC)),
        ("1969-12-31T23:59:59.9Z", datetime(1969, 12, 31, 23, 59, 59, 900000, UTC)),
        ("2024-02-29T00:00:00Z", datetime(2024, 2, 29, tzinfo=UTC)),
        ("2023-02-29T00:00:00Z", None),
        ("infinity", None),
    ],
)
def test_moments_are_those_of_the_text(text: str, moment: datetime | None) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    micros = None if moment is None else (moment - epoch) // (moment.resolution)
    assert converted("timestamptz", text) == [micros]


LATEST = {
    "+294246-12-31T23:59:59.999999Z": 9_223_371_244_799_999_999,
    "+294247-01-01T00:00:00Z": None,  # the engines support nine days of this year
    "+294247-01-09T00:00:00Z": None,
}


@pytest.mark.parametrize(("text", "micros"), LATEST.items())
def test_moments_end_with_a_whole_year_on_every_road(text: str, micros: int | None) -> None:
    assert converted("timestamptz", text) == [micros]
    kind = parse_type("timestamptz")
    assert kind is not None
    is_held = holds(kind)
    assert is_held is not None and is_held(text) == (micros is not None)
    sql, is_accepted = in_sql("x", kind, DUCKDB), is_representable("x", kind, DUCKDB)
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        query = f"SELECT epoch_us({sql}), {is_accepted} FROM (SELECT ? AS x)"
        assert session.execute(query, [text]).fetchone() == (micros, micros is not None)


def test_moments_beyond_pythons_years() -> None:
    """Days by NumPy's calendar, which has no such bounds."""
    import numpy as np

    for text, year in [("-0044-03-15T12:00:00Z", -44), ("+12345-01-01T00:00:00.5Z", 12345)]:
        day = np.datetime64(f"{year:05}" + text[5:11] if year < 0 else f"{year}-01-01")
        half = 43_200_000_000 if year < 0 else 500_000
        expected = int(day.astype("datetime64[D]").astype(int)) * 86_400_000_000 + half
        assert converted("timestamptz", text) == [expected]


def test_days_and_moments_without_a_zone_are_bounded() -> None:
    assert converted("date", 0, -2440588, 2**31 - 1) == [0, -2440588, None]
    assert converted("timestamp", -1, 2**63 - 1) == [-1, None]
    assert date(1970, 1, 1).toordinal() == 719163


def test_times_are_spelled() -> None:
    found = converted("time", 0, 1, 86_400_000_000, 3_723_000_400)
    assert found == ["00:00:00", "00:00:00.000001", "24:00:00", "01:02:03.000400"]


def test_bytes_are_decoded() -> None:
    assert converted("bytea", "", "AP8=", "no base64") == [b"", b"\x00\xff", None]


@pytest.mark.parametrize("text", NO_BASE64)
def test_a_text_in_a_column_of_bytes_is_null(text: str) -> None:
    """The column has become `text` in the source, which no event shows."""
    assert converted("bytea", text) == [None]
    kind = parse_type("bytea")
    assert kind is not None
    is_held = holds(kind)
    assert is_held is not None and not is_held(text)
