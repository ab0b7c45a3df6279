"""Queries that find a row's log: through the jq that Firehose runs, on rows as they will be."""

# ruff: noqa: E501  (the cases stand in rows)
from __future__ import annotations

import base64
from dataclasses import replace
from importlib.metadata import files, version

import pytest

from cdclake.config import routing
from cdclake.config.problems import Refused
from cdclake.config.resolve import find_problems
from cdclake.config.routing import Destination, Nowhere, destinations
from cdclake.config.sample_rows import sample_rows
from cdclake.config.yaml_reader import parse_document
from cdclake.firehose.record_transform import RecordTransform
from cdclake.firehose.stream import DeliveryStream
from tests.recorded.firehose import INGESTED_AT, delivered, handed_over
from tests.recorded.recording import Recording, names

LAKE = 'destinationDatabaseName: "lake"'
YIELDS: dict[str, tuple[str, bytes, object]] = {
    # name: (query, record, where it goes or why nowhere)
    "a table": (f'{{{LAKE}, destinationTableName: .t, operation: "insert"}}', b'{"t": "a"}', Destination("lake", "a")),
    "no operation": (f"{{{LAKE}, destinationTableName: .t}}", b'{"t": "a"}', Destination("lake", "a")),
    "an update": (f'{{{LAKE}, destinationTableName: .t, operation: "update"}}', b'{"t": "a"}', Destination("lake", "a", "update")),
    "no table": (f"{{{LAKE}, destinationTableName: .t}}", b"{}", "yields no destinationTableName"),
    "an empty name": (f"{{{LAKE}, destinationTableName: .t}}", b'{"t": ""}', "yields no destinationTableName"),
    "a number": (f"{{{LAKE}, destinationTableName: .t}}", b'{"t": 1}', "yields no destinationTableName"),
    "no database": ("{destinationTableName: .t}", b'{"t": "a"}', "yields no destinationDatabaseName"),
    "no such operation": (f'{{{LAKE}, destinationTableName: "a", operation: "merge"}}', b"{}", "operation 'merge'"),
    "nothing": ("empty", b"{}", "yields 0 values"),
    "two": ("., .", b"{}", "yields 2 values"),
    "a text": (".t", b'{"t": "a"}', "yields 1 values instead of one object"),
    "a fault": (".t.u", b'{"t": 1}', "Cannot index number"),
    "no JSON": (".", b'{"t"', "not JSON"),
    "two records in one": (".", b"{}{}", "not JSON"),
    "no UTF-8": (".", b'"\xff"', "not JSON"),
    "no environment": ("{destinationDatabaseName: env.HOME}", b"{}", "no destinationDatabaseName"),
    "numbers are doubles": (f"{{{LAKE}, destinationTableName: (.n | tostring)}}", b'{"n": 9007199254740993}', Destination("lake", "9007199254740992")),
}  # fmt: skip


@pytest.mark.parametrize(("query", "record", "expected"), YIELDS.values(), ids=YIELDS)
def test_a_record_goes_where_the_query_says_and_holds_up_no_other(query, record, expected):
    good = b'{"t": "good"}'
    *_, found, last = destinations(query, [good, record, good])
    if isinstance(expected, Destination):
        assert found == expected
    else:
        assert isinstance(found, Nowhere)
        assert expected in found
    assert last == destinations(query, [good])[0]


BROKEN = {
    "{": "syntax error",
    "pick(.a)": "pick/1 is not defined",  # jq 1.7 has it
    "if .a then 1 end": "syntax error",  # so it has this
    "$unknown": "$unknown is not defined",
    "input": "aborts jq",
    'reduce range(40) as $i ("much"; . + .)': "aborts jq",
    'include "x"; .': "aborts jq",
    "def f: f; f": "did not end within 1 seconds",
}


@pytest.mark.parametrize(("query", "message"), BROKEN.items(), ids=BROKEN)
def test_a_query_that_is_none_is_refused(query, message, monkeypatch):
    monkeypatch.setattr(routing, "_TIMEOUT_S", 1 if "did not end" in message else 20)
    with pytest.raises(Refused) as refused:
        destinations(query, [b"{}"])
    assert message in refused.value.message
    assert refused.value.remedy


def test_the_package_is_the_one_with_the_jq_of_firehose():
    assert version("jq") == "1.4.1"
    [told] = [file for file in files("jq") or () if file.name == "METADATA"]
    assert "the source for jq 1.6 is downloaded" in told.read_text()


RIGHT = 'if has("order_id") then "orders_changes" else "items_changes" end'
FILE = """\
version: 1
name: shop
source: {database: shop}
firehose:
  domains:
    sales:
      route: '{destinationDatabaseName: "cdc_iceberg", destinationTableName: (QUERY)}'
tables:
  public.orders: {delivery: firehose, domain: sales, key: [order_id], columns: {order_id: bigint, at: timestamptz}}
  public.items: {delivery: firehose, domain: sales, key: [id], columns: {id: bigint, price: "numeric(3,3)", raw: bytea}}
"""
WRONG = {
    # query: (part of the message, part of the remedy)
    '"orders_changes"': ("op 'r' of 'public.items': the query sends it to cdc_iceberg.orders_changes", "cdc_iceberg.items_changes"),
    '"nobody"': ("row with cdc_op 'r' of 'public.orders': the query sends it to cdc_iceberg.nobody, which is not a changelog", "cdc_iceberg.orders_changes"),
    ".source.table": ("the query yields no destinationTableName", "distinguish the tables by `has(...)`"),
    'if .at then "orders_changes" else "items_changes" end': ("cdc_op 'd' of 'public.orders'", "orders_changes"),
    '"a"), operation: ("delete"': ("sends it to cdc_iceberg.a", "orders_changes"),
    f'{RIGHT}), operation: ("delete"': ("the query would delete", "send it to"),
    '"a': ("invalid jq 1.6 query", "correct it"),
    "halt": ("the query yields 0 values", "send it to"),
}  # fmt: skip


@pytest.mark.parametrize(("query", "told"), WRONG.items(), ids=WRONG)
def test_validate_tries_a_query_on_rows_of_each_table(query, told):
    [problem] = find_problems(parse_document(FILE.replace("QUERY", query)))
    assert (problem.line, problem.column) == (7, 14)
    assert told[0] in problem.message
    assert told[1] in problem.remedy


def test_a_right_query_has_no_problems():
    assert find_problems(parse_document(FILE.replace("QUERY", RIGHT))) == []
    folded = (
        FILE.replace("route: '", "route: >-\n        ").replace("')}'", "')}").replace(")}'", ")}")
    )
    assert find_problems(parse_document(folded.replace("QUERY", RIGHT))) == []


@pytest.mark.parametrize(
    ("route", "message"),
    [("' '", "is empty"), ('"a\\nb"', "several lines"), ("x" * 5121, "5121 characters")],
)
def test_a_query_that_firehose_would_not_take_is_refused(route, message):
    text = FILE[: FILE.index("'{")] + route + FILE[FILE.index("}'") + 2 :]
    assert message in find_problems(parse_document(text))[0].message


def test_other_mistakes_come_first():
    text = FILE.replace("QUERY", '"nobody"').replace("bytea", "bytes")
    [problem] = find_problems(parse_document(text))
    assert "unknown type" in problem.message


@pytest.mark.parametrize("name", names())
def test_every_declared_table_has_sample_rows(name):
    plan = Recording.load(name).plan
    for table in plan.tables:
        assert set(sample_rows(table, plan)) == set("rcudt")


def test_both_ways_send_the_recorded_rows_to_the_same_logs():
    recording = Recording.load("changes")
    plan = delivered(recording.plan)
    query = (
        f'{{destinationDatabaseName: "{plan.lake_database}", destinationTableName:'
        ' (if has("parent_id") then "child" else "parent" end + "_changes"), operation: "insert"}'
    )
    domain = DeliveryStream(
        name="d", topic="d", tables=("parent", "child"), routed=True, buffer_seconds=1, buffer_mib=1,
        function_seconds=1, function_mib=1, function_retries=1, retry_seconds=1,
        error_prefix="e", mib_per_second=1, route=query,
    )  # fmt: skip
    topics = [plan.table(table).topic for table in domain.tables]
    records = [record for topic in topics for record in recording.of_topic(topic)]
    handed = handed_over(records)["records"]
    by_function = RecordTransform(plan, dict).answer(handed, INGESTED_AT)
    by_query = RecordTransform(replace(plan, deliveries=(domain,)), dict).answer(
        handed, INGESTED_AT
    )
    assert not any("metadata" in answer for answer in by_query)
    rows = [base64.b64decode(a["kafkaRecordValue"]) for a in by_query if a["result"] == "Ok"]
    told = [a["metadata"]["otfMetadata"] for a in by_function if a["result"] == "Ok"]
    found = destinations(query, rows)
    assert len({t["destinationTableName"] for t in told}) == 2
    assert found == [
        Destination(t["destinationDatabaseName"], t["destinationTableName"], t["operation"])
        for t in told
    ]
