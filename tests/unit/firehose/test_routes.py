"""Which table rows go to: by the function's word, by a query, or by neither."""

from dataclasses import replace
from typing import Any

import pytest

from cdclake.local.firehose.records import Made, Record
from cdclake.local.firehose.routes import routed
from tests.recorded.firehose import stream_of
from tests.recorded.recording import Recording

TABLE = Recording.load("changes").plan.table("plain")
ROUTE = (
    '{destinationDatabaseName: "lake", destinationTableName:'
    ' (if has("a") then "a_changes" else "b_changes" end), operation: .op}'
)


def row(offset: int, data: str, **metadata: Any) -> Made:
    return Made(Record(0, offset, 0, b"raw"), data.encode(), metadata)


def named(table: str, database: str = "lake", **more: Any) -> dict[str, Any]:
    return {
        "otfMetadata": {
            "destinationDatabaseName": database, "destinationTableName": table, **more
        }
    }  # fmt: skip


def test_the_function_names_the_table() -> None:
    rows = [
        row(0, "{}", **named("a_changes")), row(1, "{}", **named("b_changes", operation="insert")),
        row(2, "{}", **named("a_changes")), row(3, "{}"), row(4, "{}", **named("a", "other")),
        row(5, "{}", **named("a_changes", operation="update")),
    ]  # fmt: skip
    by_table, failures = routed(stream_of(TABLE), "lake", rows)
    assert by_table == {"a_changes": [rows[0], rows[2]], "b_changes": [rows[1]]}
    assert [failure.record.offset for failure in failures] == [3, 4, 5]
    assert {failure.code for failure in failures} == {"Iceberg.RoutingFailed"}
    for failure, said in zip(failures, ("returned no table", "'other'", "'update'"), strict=True):
        assert said in failure.message


def test_a_query_names_the_table() -> None:
    rows = [
        row(0, '{"a": 1}'),
        row(1, '{"b": 1}'),
        row(2, '{"a": 1, "op": "delete"}'),
        row(3, "[]"),
    ]
    by_table, failures = routed(stream_of(TABLE, route=ROUTE), "lake", rows)
    assert by_table == {"a_changes": [rows[0]], "b_changes": [rows[1]]}
    assert [failure.record.offset for failure in failures] == [2, 3]
    assert [failure.raw for failure in failures] == [rows[2].data, rows[3].data]


@pytest.mark.parametrize("route", ["{destinationTableName", "def f: f; f"])
def test_a_query_that_breaks_off_fails_its_rows_alone(
    route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdclake.config.routing._TIMEOUT_S", 1)
    by_table, failures = routed(stream_of(TABLE, route=route), "lake", [row(0, "{}"), row(1, "{}")])
    assert by_table == {}
    assert len(failures) == 2


def test_rows_of_a_stream_with_one_table_go_there_unless_the_function_says_otherwise() -> None:
    rows = [row(0, "{}"), row(1, "{}", **named("b"))]
    by_table, failures = routed(replace(stream_of(TABLE), table="a"), "lake", rows)
    assert (by_table, failures) == ({"a": [rows[0]], "b": [rows[1]]}, [])
