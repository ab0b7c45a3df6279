"""Web logs in a pipeline file: what their plan is, where their requests go, what is refused."""

# ruff: noqa: E501  (the cases stand in rows)
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cdclake.config.resolve import find_problems, load_plan
from cdclake.config.routing import Destination, destinations
from cdclake.config.yaml_reader import parse_document
from cdclake.iceberg.schemas import appended_schemas
from cdclake.plan import Plan
from cdclake.web_logs.row import request_row
from tests.source_tree import PROJECT
from tests.unit.config.mistakes import assert_reported

DIGEST = f"r/n:1@sha256:{'0a' * 32}"
TABLES = """\
source: {database: shop}
tables:
  public.orders: {key: [id], columns: {id: int}, delivery: firehose}
"""


def file(entry: str = "{}", more: str = "", name: str = "request") -> str:
    return f"version: 1\nname: shop\n{more}weblogs:\n  {name}: {entry}\n"


def plan_of(text: str, folder: Path, environment: str | None = None) -> Plan:
    path = folder / "pipeline.yaml"
    path.write_text(text)
    return load_plan(path, environment)


def row(status: int) -> bytes:
    parsed = {
        "remote_addr": "::1", "time_local": "22/Nov/2026:19:00:00 +0000", "status": status,
        "body_bytes_sent": 0,
    }  # fmt: skip
    return json.dumps(request_row(parsed, 0)).encode()


def test_a_file_may_have_web_logs_alone(tmp_path):
    plan = plan_of(file("{statuses: [200, 404]}"), tmp_path)
    [logs] = plan.web_logs
    assert (plan.tables, plan.deliveries, plan.streams) == ((), (), (logs.stream,))
    assert (logs.name, logs.by, logs.statuses) == ("request", "status", (200, 404))
    assert logs.tables == ("request_200", "request_404", "request_other")
    assert (logs.stream.source, logs.stream.topic, logs.stream.table) == ("direct_put", "", None)
    assert logs.stream.function == "firehose_requests"
    assert Plan.from_json(plan.to_json()) == plan


def test_every_status_goes_to_a_declared_table_by_the_jq_of_firehose(tmp_path):
    plan = plan_of(file("{statuses: [200, 404]}", "lake: {database: mine}\n"), tmp_path)
    [logs] = plan.web_logs
    statuses = (*range(600), 999)
    found = destinations(str(logs.stream.route), [row(status) for status in statuses])
    for status, destination in zip(statuses, found, strict=True):
        table = f"request_{status}" if status in (200, 404) else "request_other"
        assert destination == Destination("mine", table)
        assert table in logs.tables


def test_the_longest_list_of_statuses_fits_into_a_query_of_firehose(tmp_path):
    listed = ", ".join(map(str, range(100, 200)))
    plan = plan_of(file(f"{{statuses: [{listed}]}}", name="n" * 30), tmp_path)
    assert len(str(plan.web_logs[0].stream.route)) <= 5120


def test_by_day_there_is_one_table_and_no_query(tmp_path):
    [logs] = plan_of(file("{route: day}"), tmp_path).web_logs
    assert (logs.tables, logs.statuses) == (("request",), ())
    assert (logs.stream.route, logs.stream.table) == (None, "request")


def test_all_tables_are_parted_by_the_day_of_the_request_in_format_version_2(tmp_path):
    plan = plan_of(
        file("{statuses: [200]}", "lake: {format_version: 3, readers: [spark]}\n"), tmp_path
    )
    schemas = appended_schemas(plan)
    assert [schema.name for schema in schemas] == ["request_200", "request_other"]
    assert {schema.partition_by for schema in schemas} == {("days(time_local)",)}
    assert {schema.properties["format-version"] for schema in schemas} == {"2"}


def test_web_logs_have_what_they_say_and_else_what_all_streams_have(tmp_path):
    text = file(
        "{source: kinesis, buffer: {mib: 8}, images: {nginx: '" + DIGEST + "'}}",
        TABLES + "firehose: {buffer: {seconds: 60}, error_prefix: bad}\n",
    ) + "environments: {dev: {weblogs: {request: {retry_seconds: 5}}}}\n"  # fmt: skip
    plan = plan_of(text, tmp_path)
    [logs] = plan.web_logs
    stream = logs.stream
    assert (stream.source, stream.topic) == ("kinesis", "request")
    assert (stream.buffer_seconds, stream.buffer_mib) == (60, 8)
    assert (stream.error_prefix, stream.function_retries) == ("bad", 3)
    assert (logs.nginx, logs.router) == (DIGEST, None)
    assert [each.name for each in plan.streams] == ["orders", "request"]
    dev = plan_of(text, tmp_path, "dev").web_logs[0]
    assert dev == replace(logs, stream=replace(stream, retry_seconds=5))


def test_images_are_built_where_the_file_says_so(tmp_path):
    both, one = "{images: build}", "{images: {nginx: '" + DIGEST + "', router: build}}"
    for entry, wanted in ((both, ("build", "build")), (one, (DIGEST, "build"))):
        [logs] = plan_of(file(entry, "aws: {region: eu-west-1}\n"), tmp_path).web_logs
        assert (logs.nginx, logs.router) == wanted


CASES = {
    # name: (file, line, column, part of the message, part of the remedy)
    "nothing at all": ("version: 1\nname: shop\n", 1, 1, "`tables` is missing", "add"),
    "tables without their source": (
        file(more=TABLES.replace("source: {database: shop}\n", "")), 1, 1, "`source` is missing",
        "add",
    ),
    "tables with an empty source": (
        file(more=TABLES.replace("{database: shop}", "")), 3, 1, "`source` must be a mapping", "`database: NAME`",
    ),
    "no name": (file(name="Request"), 4, 3, "invalid web logs name", "lowercase"),
    "no such route": (file("{route: hour}"), 4, 20, "`route` cannot be 'hour'", "`day`"),
    "no such source": (file("{source: msk}"), 4, 21, "`source` cannot be 'msk'", "`kinesis`"),
    "a removed key": (file("{backup: all}"), 4, 13, "`backup` was removed", "source: kinesis"),
    "no status": (file("{statuses: [99]}"), 4, 24, "invalid HTTP status 99", "100 to 599"),
    "a status as text": (file("{statuses: ['200']}"), 4, 24, "must be a whole number", "quotes"),
    "a status twice": (file("{statuses: [200, 200]}"), 4, 13, "200 is listed twice", "remove one"),
    "no statuses": (file("{statuses: []}"), 4, 13, "`statuses` is empty", "at least one"),
    "statuses of one table": (
        file("{route: day, statuses: [200]}"), 4, 25, "with `route: day`", "`route: status`",
    ),
    "an image by its tag": (
        file("{images: {nginx: nginx:1.27}}"), 4, 29, "has no digest", "@sha256",
    ),
    "an unknown way to images": (
        file("{images: pull}"), 4, 21, "`images` cannot be 'pull'", "`build`",
    ),
    "an unknown image": (
        file("{images: {apache: build}}"), 4, 22, "unknown key 'apache'", "nginx",
    ),
    "more than a function takes": (
        file("{function: {mib: 2}}"), 4, 29, "may take 6.3 MB per call", "`function: {mib: 1.9}`",
    ),
    "a table's stream": (file(more=TABLES, name="orders"), 7, 3, "already has the name 'orders'", "rename"),
    "a domain": (
        file(more=TABLES.replace("delivery", "domain: d, delivery") + "firehose: {domains: {d: {}}}\n", name="d"),
        8, 3, "already has the name 'd'", "rename",
    ),
    "a table's log": (
        file("{route: day}", TABLES, "orders_changes"), 7, 3,
        "'orders_changes' would also be that of 'public.orders'", "rename",
    ),
    "each other's tables": (
        file("{route: status}") + "  request_200: {route: day}\n", 5, 3,
        "'request_200' would also be that of the web logs 'request'", "rename",
    ),
    "streams of the account": (
        file(more=TABLES + "firehose: {account_streams: 2}\n"), 6, 29, "needs 3 streams", "raise the quota",
    ),
    "no image on AWS": (
        file("{images: {nginx: '" + DIGEST + "'}}", "aws: {region: eu-west-1}\n"), 5, 3,
        "no image `router`", "sha256",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "remedy"), CASES.values(), ids=CASES)
def test_a_mistake_is_reported_where_it_is(text, line, column, message, remedy):
    assert_reported(text, line, column, message, remedy)


def test_settings_of_all_streams_need_no_table():
    assert find_problems(parse_document(file(more="firehose: {retry_seconds: 60}\n"))) == []


def test_the_example_parts_the_usual_statuses():
    plan = load_plan(PROJECT / "pipelines" / "weblogs.yaml")
    assert plan.web_logs[0].tables[-1] == "request_other"
