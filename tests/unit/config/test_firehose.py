"""`delivery: firehose` in the pipeline file: what is refused where, and what comes out."""

# ruff: noqa: E501  (the cases stand in rows)
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cdclake.config.resolve import find_problems, load_plan
from cdclake.config.yaml_reader import parse_document
from cdclake.firehose.stream import CALL_TIMEOUT_S, DeliveryStream
from cdclake.plan import Plan
from tests.unit.config.mistakes import assert_reported

HEAD = "version: 1\nname: shop\nsource: {database: shop}\n"


def file(firehose: str = "", *more: str, tables: int = 1) -> str:
    """Line 4 is `firehose:` if there is any; each table is a line, with `more` in its entry."""
    section = f"firehose: {firehose}\n" if firehose else ""
    entry = ", ".join(["key: [id]", "columns: {id: int}", "delivery: firehose", *more])
    listed = "".join(f"  public.t{n}: {{{entry}}}\n" for n in range(tables))
    return f"{HEAD}{section}tables:\n{listed}"


SALES = "domain: sales"
CASES = {
    # name: (file, line, column, part of the message, part of the remedy)
    "nothing to deliver": (
        file("{}").replace("firehose}", "stream}"), 4, 1, "no table is delivered", "to one, or remove",
    ),
    "a streamed table's domain": (
        file("{domains: {sales: {}}}", SALES, tables=2).replace("firehose, domain", "stream, domain", 1),
        6, 64, "has a domain, but is not", "add `delivery: firehose`",
    ),
    "applied by nobody": (
        file("", "apply: each_batch"), 5, 73, "has no batches of the stream", "on a schedule",
    ),
    "unknown domain": (
        file("{domains: {sales: {}}}", "domain: sale", tables=2).replace("sale}", "sales}", 1),
        7, 74, "does not declare 'sale'", "did you mean 'sales'?",
    ),
    "undeclared domain": (file("", SALES), 5, 74, "does not declare 'sales'", "declare `sales: {}`"),
    "empty domain": (file("{domains: {sales: {}}}"), 4, 22, "no table is in the domain", "`domain: sales`"),
    "a table's name": (file("{domains: {t0: {}}}"), 4, 22, "'t0' has the name of a table's stream", "rename"),
    "no domain's name": (file("{domains: {Sales: {}}}"), 4, 22, "invalid domain name", "1 to 30"),
    "buffer too long": (file("{buffer: {seconds: 901}}"), 4, 30, "`seconds` cannot be 901", "900"),
    "buffer too large": (file("{buffer: {mib: 129}}"), 4, 26, "`mib` cannot be 129", "128"),
    "function's buffer": (file("{function: {mib: 4}}"), 4, 28, "`mib` cannot be 4", "equal to 3"),
    "retries too long": (file("{retry_seconds: 7201}"), 4, 27, "cannot be 7201", "7200"),
    "removed key": (
        file("{backup: all}"), 4, 12, "S3BackupMode` of IcebergDestinationConfiguration in its API", "stay in Kafka",
    ),
    "removed key of a domain": (
        file("{domains: {sales: {backup: failed}}}", SALES), 4, 30, "`backup` was removed", "remove the key",
    ),
    "removed key elsewhere": (file("{buffer: {backup: all}}"), 4, 21, "unknown key 'backup'", "seconds"),
    "prefix": (file("{error_prefix: /x}"), 4, 26, "invalid error prefix '/x'", "adds the kind"),
    "prefix of source sql": (file("{error_prefix: source-sql}"), 4, 26, "'source-sql' is reserved", "another"),
    "prefix of ours": (file("{error_prefix: control/x}"), 4, 26, "'control' is reserved", "another"),
    "unknown key": (file("{bufer: {}}"), 4, 12, "unknown key 'bufer'", "did you mean 'buffer'?"),
    "unknown key of a domain": (
        file("{domains: {sales: {bufer: {}}}}", SALES), 4, 30, "unknown key 'bufer'", "'buffer'?",
    ),
    "more streams than allowed": (
        file("{account_streams: 3}", tables=3), 4, 29, "needs 4 streams", "shared `domain:`",
    ),
    "more than is read of a topic": (
        file("{mib_per_second: 10}"), 4, 28, "10 MiB per second for 'public.t0', but Firehose reads only 9.5", "split",
    ),
    "more than is read of a domain's topic": (
        file("{domains: {sales: {mib_per_second: 10}}}", SALES), 4, 46, "for the domain 'sales'", "split",
    ),
    "more than a function takes": (
        file("{function: {mib: 3}}"), 4, 28, "each with a tombstone, may take 8.6 MB per call for 'public.t0'", "`mib: 2.2`",
    ),
    "calls longer than the jobs wait": (
        file("{function: {retries: 32}}"), 4, 32, "append rows of 'public.t0' after 181 minutes, but other jobs wait at most 180", "`retries: 31`",
    ),
    "calls and appends longer than the jobs wait": (
        file("{retry_seconds: 7200, function: {seconds: 900}, domains: {sales: {buffer: {seconds: 900}, function: {retries: 5}}}}", SALES),
        4, 121, "rows of the domain 'sales' after 185 minutes", "`retries: 4`",
    ),
    "small files": (
        file("{buffer: {mib: 2}, domains: {sales: {}}}", SALES, tables=3),
        4, 26, "3 tables share 2 MiB in the domain 'sales'", "split the domain",
    ),
    "a domain of 65": (file("{domains: {sales: {}}}", SALES, tables=65), 4, 22, "65 tables", "at most 128"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "remedy"), CASES.values(), ids=CASES)
def test_a_mistake_is_reported_where_it_is(text, line, column, message, remedy):
    assert_reported(text, line, column, message, remedy)


def test_what_fits_is_not_refused():
    wide = file("{function: {mib: 2.2}, mib_per_second: 9, account_streams: 5}", tables=4)
    assert (
        find_problems(parse_document(wide.replace("{id: int}", f"{{id: int, {'x' * 40}: int}}")))
        == []
    )
    shared = file("{domains: {sales: {buffer: {mib: 65}}}}", SALES, tables=65)
    assert find_problems(parse_document(shared)) == []
    longest = "{buffer: {seconds: 900}, function: {seconds: 900, retries: 4}, retry_seconds: 7200}"
    assert find_problems(parse_document(file(longest))) == []


def test_the_longest_delivery_includes_each_call_until_its_timeout(tmp_path):
    [stream] = plan_of(file("{function: {seconds: 10, retries: 20}}"), tmp_path).deliveries
    calls = 10 + 21 * CALL_TIMEOUT_S
    assert stream.lateness_seconds >= stream.buffer_seconds + calls + stream.retry_seconds


def plan_of(text: str, folder: Path, environment: str | None = None) -> Plan:
    path = folder / "pipeline.yaml"
    path.write_text(text)
    return load_plan(path, environment)


def test_a_domain_has_what_it_says_and_else_what_all_have(tmp_path):
    settings = "{buffer: {seconds: 60, mib: 32}, domains: {sales: {buffer: {mib: 64}}}}"
    text = file(settings, SALES, tables=3).replace(f", {SALES}", "", 1)
    plan = plan_of(text + "environments: {dev: {firehose: {retry_seconds: 0}}}\n", tmp_path)
    alone, shared = plan.deliveries
    assert alone == DeliveryStream(
        name="t0", topic="shop.public.t0", tables=("t0",), routed=False, buffer_seconds=60,
        buffer_mib=32, function_seconds=60, function_mib=1, function_retries=3, retry_seconds=300,
        error_prefix="firehose", mib_per_second=1,
    )  # fmt: skip
    assert shared == replace(
        alone, name="sales", topic="shop.sales", tables=("t1", "t2"), routed=True, buffer_mib=64
    )
    assert [table.topic for table in plan.tables] == ["shop.public.t0", "shop.sales", "shop.sales"]
    assert plan.topics.count("shop.sales") == 1
    assert Plan.from_json(plan.to_json()) == plan
    older = plan.to_json().replace('"buffer_mib":', '"backup": "all", "buffer_mib":')
    assert Plan.from_json(older) == plan
    dev = plan_of(tmp_path.joinpath("pipeline.yaml").read_text(), tmp_path, "dev")
    assert {stream.retry_seconds for stream in dev.deliveries} == {0}
