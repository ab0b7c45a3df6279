"""Pipelines of any size fit CloudFormation, and the file says where they would not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from cdclake.config.checks import delivery_size
from cdclake.config.checks.connector_size import MAX_CONFIGURATION_BYTES
from cdclake.config.partial_model import outline_tables
from cdclake.config.problems import InvalidPipeline
from cdclake.config.resolve import load_plan
from cdclake.config.yaml_reader import parse_document
from cdclake.iceberg.as_of_query import AS_OF
from cdclake.iceberg.saved_queries import INCOMPLETE, as_one_text
from cdclake.plan import Column, Plan
from cdclake.stacks.saved_queries_stack import queries_of_put_stacks, shard_queries
from cdclake.web_logs.model import WebLogs
from tests.synth.deployments import (
    CHECKED,
    DERIVED,
    GOVERNED,
    LOADED,
    PIPELINE,
    POLLED,
    PRIVATE,
    PUBLISHED,
    WEB_LOGS,
    synthesize,
)
from tests.unit.verify.lakes import make_plan, make_table

# CloudFormation's limits on one template (its user guide, "Understand quotas").
MOST_RESOURCES, MOST_BYTES, MOST_OUTPUTS = 500, 1_000_000, 200
MOST_EVENT_BYTES = 262_144  # of Lambda, for an asynchronous call, before October 2025

COLUMNS = [f"c{n}" for n in range(19)]
HEAD = PIPELINE.split("  public.orders:")[0]


def many_tables(count: int, shards: int = 1) -> str:
    columns = ", ".join(f"{name}: text" for name in COLUMNS)
    return HEAD + "".join(
        f"  public.t{n}:\n    key: [id]\n    columns: {{id: bigint, {columns}}}\n"
        f"    shard: {n % shards + 1}\n"
        for n in range(count)
    )


@pytest.mark.synth
def test_a_shard_full_of_tables_that_glue_maintains_fits(tmp_path):
    tables = many_tables(64).replace("    shard: 1", "    maintenance: glue")
    template = synthesize(tables, tmp_path).templates["shop-optimizers-1"]
    optimizers = [r["Type"] for r in template["Resources"].values() if "Optimizer" in r["Type"]]
    assert len(optimizers) == 64 * 2 * 3
    assert len(template["Resources"]) <= MOST_RESOURCES
    assert len(json.dumps(template, indent=1)) <= MOST_BYTES


@pytest.mark.parametrize(
    ("count", "shards"),
    [
        pytest.param(1, 1, marks=pytest.mark.synth),
        (10, 1),
        pytest.param(100, 1, marks=pytest.mark.synth),
        pytest.param(450, 1, marks=pytest.mark.synth),
        pytest.param(500, 2, marks=pytest.mark.synth),
    ],
)
def test_every_stack_fits(tmp_path, count, shards):
    templates = synthesize(many_tables(count, shards), tmp_path).templates
    topics = 0
    for stack, template in templates.items():
        assert len(template["Resources"]) <= MOST_RESOURCES, stack
        assert len(template.get("Outputs", {})) <= MOST_OUTPUTS, stack
        assert len(json.dumps(template, indent=1)) <= MOST_BYTES, stack
        topics += sum(r["Type"] == "AWS::MSK::Topic" for r in template["Resources"].values())
    assert topics == count + 5  # and our own
    cdc = templates["shop-cdc"]
    made = [r for r in cdc["Resources"].values() if r["Type"] == "AWS::KafkaConnect::Connector"]
    [configuration] = [each["Properties"]["ConnectorConfiguration"] for each in made]
    others = len(json.dumps(cdc, indent=1)) - len(json.dumps(configuration, indent=1))
    assert others <= MOST_BYTES - MAX_CONFIGURATION_BYTES
    watching = templates["shop-observability"]["Resources"].values()
    assert sum(r["Type"] == "AWS::CloudWatch::Alarm" for r in watching) == 15  # of any number


@pytest.mark.parametrize(
    ("count", "long"), [(10, {AS_OF, INCOMPLETE}), (250, {INCOMPLETE}), (450, set())]
)
def test_the_longest_queries_are_left_out_of_large_shards(count, long):
    columns = (Column(source=name, name=name, type="text") for name in COLUMNS)
    table = make_table(columns=(*columns, Column(source="id", name="id", type="bigint")))
    tables = [replace(table, name=f"t{n}") for n in range(count)]
    texts = shard_queries(tables, make_plan(table))
    assert all(each.keys() & {AS_OF, INCOMPLETE} == long for each in texts.values())
    assert sum(len(json.dumps(as_one_text(each))) for each in texts.values()) < MOST_BYTES


def test_a_query_beyond_athenas_limit_is_left_out():
    columns = (Column(source=f"c{n}", name=f"c{n}" * 9, type="text") for n in range(700))
    table = make_table(columns=(*columns, Column(source="id", name="id", type="bigint")))
    [texts] = shard_queries([table], make_plan(table)).values()
    assert AS_OF not in texts and "live rows" in texts


@pytest.mark.synth
def test_a_stack_full_of_streams_fits(tmp_path, monkeypatch):
    """With the rights of each role in Lake Formation, long names and many columns."""
    more = ", ".join(f"a_long_name_of_column_{n}: text" for n in range(60))
    tables = many_tables(80).replace("    shard: 1", "    delivery: firehose")
    tables = tables.replace("public.t", "public.customer_order_lines_").replace(
        "c0:", f"{more}, c0:"
    )
    lake = "lake: {lake_formation: true}\n"
    deployed = synthesize(tables + PRIVATE + lake, tmp_path)
    templates = deployed.templates
    delivery = templates["shop-delivery"]
    made = [r["Type"] for r in delivery["Resources"].values()]
    assert made.count("AWS::KinesisFirehose::DeliveryStream") == 81  # and that of the redrive
    for stack in ("shop-delivery", "shop-observability"):
        assert len(templates[stack]["Resources"]) <= MOST_RESOURCES
        written = (deployed.folder / f"{stack}.template.json").stat().st_size
        assert written <= MOST_BYTES, stack
    wanted = [r for r in delivery["Resources"].values() if r["Type"] == "Custom::CdclakeTables"]
    written = (deployed.folder / "shop-delivery.template.json").stat().st_size
    document = parse_document(tables + PRIVATE + lake)
    for most, found in ((written - 1, 1), (written * 1.2, 0)):  # the check is about right
        monkeypatch.setattr(delivery_size, "_MAX_BYTES", most)
        checked = delivery_size.check_delivery_size(document, outline_tables(document))
        assert len([*checked]) == found
    assert len(json.dumps(wanted)) < MOST_EVENT_BYTES / 2  # an update sends the former ones too


@pytest.mark.synth
def test_web_logs_with_a_table_for_every_status_fit(tmp_path):
    statuses = ", ".join(str(400 + n) for n in range(100))
    text = WEB_LOGS.replace("[200, 404]", f"[{statuses}]")
    template = synthesize(text, tmp_path).templates["shop-weblogs-request"]
    kinds = [each["Type"] for each in template["Resources"].values()]
    assert kinds.count("AWS::Glue::Table") == 101
    assert len(kinds) <= MOST_RESOURCES
    assert len(json.dumps(template, indent=1)) <= MOST_BYTES


def routed(name: str) -> str:
    """Return an entry of `puts:` with as many tables as one may have."""
    tables = "".join(f"      {name}n{n}: {{columns: {{id: bigint}}}}\n" for n in range(30))
    return f"  {name}:\n    route: kind\n    tables:\n{tables}"


PUT = "version: 1\nname: shop\nputs:\n"


@pytest.fixture
def one_entry(tmp_path):
    (tmp_path / "shop.yaml").write_text(PUT + routed("e0"))
    return load_plan(tmp_path / "shop.yaml")


def put_stacks(plan: Plan, entries: Sequence[int]) -> list[list[str]]:
    """Return the tables of each stack of queries if the file has copies of the plan's entry."""
    [put] = plan.puts
    puts = [
        replace(put, targets=tuple(replace(t, name=f"{t.name}_{n}") for t in put.targets))
        for n in entries
    ]
    return [[*stack] for stack in queries_of_put_stacks(replace(plan, puts=tuple(puts)))]


def test_queries_of_put_tables_fill_one_stack_after_the_other(one_entry):
    stacks = put_stacks(one_entry, range(31))
    assert [len(stack) for stack in stacks] == [450, 450, 30]
    assert len(put_stacks(one_entry, range(15))) == 1
    # An entry below the others moves nothing.
    assert put_stacks(one_entry, range(32))[:2] == stacks[:2]
    # Above them it moves queries to later stacks, deployed after those that delete them.
    shifted = put_stacks(one_entry, range(-1, 31))
    number = {name: at for at, stack in enumerate(shifted) for name in stack}
    assert all(number[name] >= at for at, stack in enumerate(stacks) for name in stack)


def test_queries_of_web_logs_with_long_names_fit_by_their_size(one_entry):
    [put] = one_entry.puts
    logs = tuple(
        WebLogs(
            stream=replace(put.stream, tables=tuple(f"r{n}_{s}" for s in range(101))), by="status"
        )
        for n in range(4)
    )
    plan = replace(one_entry, puts=(), web_logs=logs, lake_database="d" * 128)
    assert [len(stack) for stack in queries_of_put_stacks(plan)] == [303, 101]


@pytest.mark.synth
def test_put_tables_of_several_stacks_of_queries_fit(tmp_path):
    deployed = synthesize(PUT + "".join(routed(f"e{n}") for n in range(17)), tmp_path)
    queries = {name for name in deployed.templates if "-queries-" in name}
    assert queries == {"shop-queries-puts", "shop-queries-puts-2"}
    artifacts = json.loads((deployed.folder / "manifest.json").read_text())["artifacts"]
    assert "shop-queries-puts" in artifacts["shop-queries-puts-2"]["dependencies"]
    for stack, template in deployed.templates.items():
        assert len(template["Resources"]) <= MOST_RESOURCES, stack
        assert len(json.dumps(template, indent=1)) <= MOST_BYTES, stack


@pytest.mark.synth
def test_a_stack_full_of_schedules_fits(tmp_path):
    """With every job, and names as long as they may be."""
    copies = "".join(
        f"  public.t{n}:\n    key: [id]\n    columns: {{id: bigint, note: text}}\n"
        f"    apply: scheduled\n    publish: [{{hudi: {{name: {'x' * 120}_{n}}}}}]\n"
        for n in range(344)
    )
    text = LOADED + CHECKED + PUBLISHED + POLLED + copies + GOVERNED + DERIVED
    deployed = synthesize(f"{text}stream: {{mode: scheduled}}\n", tmp_path)
    schedules = deployed.resources("AWS::Scheduler::Schedule")
    started = [each for each in schedules if "--tables" in each["Properties"]["Target"]["Input"]]
    assert len(started) == 350
    template = deployed.templates["shop-processing"]
    assert len(template["Resources"]) <= MOST_RESOURCES
    assert len(json.dumps(template, indent=1)) <= MOST_BYTES


def test_a_full_shard_stops_synth_before_cloudformation_would(tmp_path):
    with pytest.raises(InvalidPipeline, match=r"shard 1 has no room for 'public[.]t450'"):
        synthesize(many_tables(451), tmp_path)
