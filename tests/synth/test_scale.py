"""Pipelines of any size fit CloudFormation, and the file says where they would not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cdclake.config.checks import delivery_size
from cdclake.config.partial_model import outline_tables
from cdclake.config.problems import InvalidPipeline
from cdclake.config.yaml_reader import parse_document
from cdclake.iceberg.as_of_query import AS_OF
from cdclake.iceberg.saved_queries import INCOMPLETE, as_one_text
from cdclake.plan import Column
from cdclake.stacks.saved_queries_stack import shard_queries
from tests.synth.deployments import PIPELINE, PRIVATE, WEB_LOGS, synthesize
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


def test_a_full_shard_stops_synth_before_cloudformation_would(tmp_path):
    with pytest.raises(InvalidPipeline, match=r"shard 1 has no room for 'public[.]t450'"):
        synthesize(many_tables(451), tmp_path)
