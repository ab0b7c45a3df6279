"""A row that no table took becomes a record that makes exactly this row, or none."""

# ruff: noqa: E501  (the cases stand in rows)
from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdclake.config.resolve import load_plan
from cdclake.firehose.put_records import PutRow
from cdclake.puts.put_row import PutRoutes
from cdclake.puts.put_table import PutStream
from cdclake.puts.row_record import RowRecords

ARRIVED_MS = 1_790_000_000_123
COLUMNS = """{id: bigint, userId: text, price: "numeric(10,2)", big: "numeric(38,0)", at: timestamptz,
      local: timestamp, day: date, ok: boolean, ratio: double precision, small: int, body: jsonb}"""
ONE = f"columns: {COLUMNS}, key: [id]"
ROUTED = """route: kind, tables: {
      orders: {columns: {id: int, kind: text}, values: [order, refund]},
      views: {columns: {id: int, page: text}}, pages: {columns: {id: int, page: text}}}"""


def put_of(folder: Path, entry: str) -> PutStream:
    file = folder / "shop.yaml"
    file.write_text(f"version: 1\nname: shop\nputs:\n  clicks: {{{entry}}}\n")
    [put] = load_plan(file).puts
    return put


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> PutStream:
    return put_of(tmp_path_factory.mktemp("one"), ONE)


def row_of(put: PutStream, record: bytes) -> PutRow:
    return PutRoutes(put).row(record, ARRIVED_MS)


def record_of(put: PutStream, row: str) -> bytes | None:
    return RowRecords(put).record(row.encode())


_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_TIMES = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda each: st.lists(each) | st.dictionaries(_TEXT, each),
    max_leaves=5,
)  # fmt: skip
_OFFSETS = st.integers(-23 * 60, 23 * 60).map(lambda m: dt.timezone(dt.timedelta(minutes=m)))
_FIELDS: dict[str, st.SearchStrategy[object]] = {
    "userId": _TEXT,
    "price": st.decimals(-99_999_999, 99_999_999, places=2).map(str),
    "big": st.integers(-(10**38) + 1, 10**38 - 1),
    "at": st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1), timezones=_OFFSETS).map(
        dt.datetime.isoformat
    ),
    "local": _TIMES.map(dt.datetime.isoformat),
    "day": st.dates().map(dt.date.isoformat),
    "ok": st.booleans(),
    "ratio": st.floats(allow_nan=False, allow_infinity=False),
    "small": st.integers(-(2**31), 2**31 - 1),
    "body": _JSON,
}
_ID: dict[str, st.SearchStrategy[object]] = {"id": st.integers(-(2**63), 2**63 - 1)}
_RECORDS = st.fixed_dictionaries(_ID, optional=_FIELDS)


@settings(deadline=None, database=None)
@given(_RECORDS)
def test_a_row_becomes_a_record_that_makes_the_same_row(one: PutStream, record: object) -> None:
    row = row_of(one, json.dumps(record).encode())
    again = record_of(one, row.data)
    assert again is not None
    assert row_of(one, again) == row


def test_a_row_of_a_routed_stream_names_its_table_by_its_columns(tmp_path: Path) -> None:
    put = put_of(tmp_path, ROUTED)
    order = row_of(put, b'{"kind": "refund", "id": 1}')
    again = record_of(put, order.data)
    assert again == b'{"id":1,"kind":"refund"}' and row_of(put, again) == order
    assert record_of(put, row_of(put, b'{"kind": "views", "id": 1}').data) is None  # or `pages`
    single = put_of(tmp_path, "route: kind, tables: {views: {columns: {id: int}}}")
    view = row_of(single, b'{"kind": "views", "id": 1}')
    assert record_of(single, view.data) == b'{"id":1,"kind":"views"}'


def test_a_column_that_was_added_since_is_null(tmp_path: Path) -> None:
    row = row_of(put_of(tmp_path, "columns: {id: int}"), b'{"id": 1}')
    wider = put_of(tmp_path, "columns: {id: int, page: text}")
    again = record_of(wider, row.data)
    assert again is not None
    assert json.loads(row_of(wider, again).data) == {**json.loads(row.data), "page": None}


@pytest.mark.parametrize(
    "row",
    [
        "no row", "[]", "{}", '{"id": 1}',  # a record, not a row
        '{"id": "1", "arrived_at": 1}', '{"id": 1, "arrived_at": "1"}', '{"id": 1, "arrived_at": 1.5}',
        '{"id": 1, "gone": 2, "arrived_at": 1000}', '{"id": 1, "arrived_at": 1001}',
        '{"id": null, "arrived_at": 1000}', '{"id": 1, "day": 99999999999, "arrived_at": 1000}',
        '{"id": 1, "day": "2026-01-01", "arrived_at": 1000}', '{"id": 1, "ok": 1, "arrived_at": 1000}',
        '{"id": 1, "price": 1.005, "arrived_at": 1000}', '{"id": 1, "body": "1, 2", "arrived_at": 1000}',
        '{"id": 1, "body": "1,\\"id\\":2", "arrived_at": 1000}', '{"id": 1, "at": 1.5, "arrived_at": 1000}',
        '{"id": 1, "body": "{ }", "arrived_at": 1000}', '{"id": 1, "arrived_at": 1e99}',
    ],
)  # fmt: skip
def test_what_no_record_makes_is_none(one: PutStream, row: str) -> None:
    assert record_of(one, row) is None


def test_a_record_is_put_as_it_is_and_an_uncertain_row_is_not(tmp_path: Path) -> None:
    records = RowRecords(put_of(tmp_path, "columns: {id: int}, unknown_fields: ignore"))
    for data, expected in (
        (b'{"id": 1, "other": 2}\n', b'{"id": 1, "other": 2}\n'),
        (b'{"id":1,"arrived_at":1000}', b'{"id":1}'),
        (b'{"id":1,"former":2,"arrived_at":1000}', None),
        (b'{"id":"x"}', None),
        (b"no JSON", None),
        (b'{"id": 1e9999999999999999999}', None),
    ):
        assert records.of(data) == expected
