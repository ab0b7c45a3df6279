"""The literal bound in the stored text of `<t>_current`."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from cdclake.firehose.redrive_stream import lateness_seconds
from cdclake.firehose.stream import DeliveryStream
from cdclake.iceberg.athena_views import athena_views
from cdclake.iceberg.stored_view import bound_of, lateness_of, with_bound
from tests.unit.iceberg.test_athena_views import TABLE
from tests.unit.verify.lakes import make_plan, make_table

BOUND = 1_764_000_000_123_457
SLOW_STREAM = DeliveryStream(
    name="t", topic="p.public.t", tables=("t",), routed=False, buffer_seconds=300, buffer_mib=64,
    function_seconds=60, function_mib=1, function_retries=3, retry_seconds=7200,
    error_prefix="f", mib_per_second=1,
)  # fmt: skip


def stored(select: str, **fields: Any) -> str:
    """A view as Trino stores it."""
    body = json.dumps({"originalSql": select, "schema": "lake_db", **fields})
    return f"/* Presto View: {base64.b64encode(body.encode()).decode()} */"


def select_of(text: str) -> str:
    body = text.removeprefix("/* Presto View: ").removesuffix(" */")
    return str(json.loads(base64.b64decode(body))["originalSql"])


def current(since: int | None) -> str:
    statement = athena_views(TABLE, make_plan(TABLE), since)["t_current"]
    return statement.partition(" AS\n")[2]


@pytest.mark.parametrize("before", [BOUND, -1])
def test_bound_is_read_and_replaced_by_another(before: int) -> None:
    text = stored(current(before), columns=[{"name": "id"}])
    assert (bound_of(text), lateness_of(text)) == (before, 0)
    renewed = with_bound(text, BOUND + 5)
    assert select_of(renewed) == current(BOUND + 5)
    assert bound_of(renewed) == BOUND + 5
    assert '"columns": [{"name": "id"}]' in base64.b64decode(renewed.split(" ")[3]).decode()


def test_bound_is_found_as_trino_formats_it() -> None:
    formatted = current(BOUND).replace("decimal(38,0)", "DECIMAL(38, 0)")
    formatted = re.sub(r"coalesce(\(max_by.*) - 0 AS", r"(COALESCE\1 - 0) AS", formatted)
    assert "(COALESCE" in formatted
    assert (bound_of(stored(formatted)), lateness_of(stored(formatted))) == (BOUND, 0)


@pytest.mark.parametrize("before", [None, BOUND, -1])
def test_lateness_is_the_one_that_the_view_was_created_with(before: int | None) -> None:
    table = make_table(delivery="firehose")
    plan = make_plan(table, deliveries=(SLOW_STREAM,))
    late = lateness_seconds(plan, table)
    assert late > SLOW_STREAM.retry_seconds
    text = athena_views(table, plan, before)["t_current"].partition(" AS\n")[2]
    assert lateness_of(stored(text)) == late * 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(stored(current(None)), id="without a bound"),
        pytest.param(stored("SELECT CAST(7 AS decimal(38,0))"), id="another view"),
        pytest.param(
            stored(current(BOUND).replace(str(BOUND), "9", 1)), id="two different literals"
        ),
        pytest.param("/* Presto View: bm8= */", id="no JSON"),
        pytest.param("SELECT 1", id="a view of Hive"),
        pytest.param("", id="a table"),
    ],
)
def test_other_texts_have_no_bound(text: str) -> None:
    assert bound_of(text) is None
    with pytest.raises(ValueError, match="no view with a literal bound"):
        with_bound(text, BOUND)
