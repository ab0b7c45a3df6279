"""What the plan says for a file without mistakes."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from cdclake.config.deployment import load_deployment
from cdclake.config.literals import parse_table_key
from cdclake.config.model import Environment, PipelineFile
from cdclake.config.problems import InvalidPipeline, Refused
from cdclake.config.resolve import find_problems, load_file, load_plan
from cdclake.config.schedule import parse_schedule, shortest_minutes
from cdclake.config.schema import pipeline_schema, render_schema
from cdclake.config.yaml_reader import parse_document
from cdclake.errors import InputError
from cdclake.plan import Plan
from tests.unit.config.pipelines import VALID

PIPELINES = Path(__file__).resolve().parents[3] / "pipelines"
SHIPPED = sorted(PIPELINES.glob("*.yaml"))

FULL = """\
version: 1
name: shop-2
source: {database: Shop, snapshot: {mode: initial}}
lake: {database: lake_db, readers: [spark], format_version: 3, history_days: 7}
stream: {trigger_seconds: 30, mode: scheduled}
schedules: {apply: "rate(1 hour)", maintain: "cron(0/15 3 ? JAN-MAR MON#1 *)"}
policies: {not_representable: null, stop_table_after: 5, oversized_records: stop}
tables:
  Sales.Order Lines:
    name: lines
    key: [Order Id, no]
    columns:
      Order Id: INT8
      no: int
      null: {type: varchar(20), mask: truncate(3)}
      card: {exclude: true}
      at: timestamp(3) with time zone
    apply: scheduled
    replica_identity: index "My Index"
    partition_by: ['bucket(16, "Order Id")', days(at), no]
    maintenance: glue
    deletes: soft
  public.events: {key: [id], columns: {id: uuid}, delivery: firehose, name: e}
aws: {kafka: {create: {brokers_per_zone: 2}}, source: {create: {storage_gb: 200}}}
environments:
  prod:
    aws: {kafka: {create: {volume_gb: 9000}}}
    stream: {trigger_seconds: 5}
    source: {database: p}
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "pipeline.yaml"
    path.write_text(text)
    return path


def full_plan(tmp_path: Path, environment: str | None = None) -> Plan:
    text = FULL.replace("format_version: 3", "format_version: 2")
    return load_plan(write(tmp_path, text), environment)


def test_defaults(tmp_path):
    plan = load_plan(write(tmp_path, VALID))
    table = plan.table("public.orders")
    assert (plan.lake_database, plan.history_days, plan.trigger_seconds) == ("cdc_iceberg", 90, 10)
    assert plan.readers == ("athena", "spark", "duckdb")
    assert plan.schedules == {
        "apply": "rate(15 minutes)",
        "maintain": "cron(0 3 * * ? *)",
        "checks": "rate(1 day)",
    }
    assert (table.name, table.topic, table.key) == ("orders", "shop.public.orders", ("order_id",))
    assert (table.delivery, table.apply, table.deletes) == ("stream", "each_batch", "hard")
    assert (table.replica_identity, table.replica_identity_declared) == ("default", False)


def test_everything_declared_reaches_the_plan(tmp_path):
    plan = full_plan(tmp_path)
    assert (plan.name, plan.source_database, plan.mode) == ("shop-2", "Shop", "scheduled")
    assert (plan.not_representable, plan.stop_table_after) == ("null", 5)
    assert plan.oversized_records == "stop"
    lines, events = plan.tables
    assert (lines.schema, lines.table, lines.name) == ("Sales", "Order Lines", "lines")
    assert lines.topic == "shop-2.Sales.Order_Lines"
    assert [column.source for column in lines.columns] == ["Order Id", "no", "null", "at"]
    assert [column.type for column in lines.columns][::3] == ["bigint", "timestamptz(3)"]
    assert (lines.columns[2].mask, lines.columns[2].truncate_to) == ("truncate", 3)
    assert lines.excluded == ("card",)
    assert lines.key == (lines.columns[0].name, "no")
    assert lines.partition_by == (f"bucket(16, {lines.key[0]})", "day(at)", "no")
    assert (lines.replica_identity, lines.replica_identity_index) == ("index", "My Index")
    assert (lines.apply, lines.maintenance, lines.deletes) == ("scheduled", "glue", "soft")
    assert (events.delivery, events.apply) == ("firehose", "scheduled")


def test_yamls_null_is_a_mask(tmp_path):
    for spelling in ("null", "'null'", "~", ""):
        text = VALID.replace("note: text", f"note:\n        type: text\n        mask: {spelling}")
        [column] = [c for c in load_plan(write(tmp_path, text)).tables[0].columns if c.mask]
        assert (column.name, column.is_nulled) == ("note", True)


def test_compaction_sorts_by_lake_names(tmp_path):
    settings = "    maintenance: {sort_by: [placed_at, order_id]}\n    state_freshness: 300\n"
    text = VALID.replace("    key:", f"{settings}    key:")
    [table] = (plan := load_plan(write(tmp_path, text))).tables
    assert (table.maintenance, table.sort_by) == ("own", ("placed_at", "order_id"))
    assert table.state_freshness == 300 and Plan.from_json(plan.to_json()) == plan


def test_a_plan_of_an_earlier_version_sorts_by_nothing(tmp_path):
    raw = json.loads(load_plan(write(tmp_path, VALID)).to_json())
    for table in raw["tables"]:
        del table["sort_by"], table["state_freshness"]
    [table] = Plan.from_json(json.dumps(raw)).tables
    assert (table.sort_by, table.state_freshness) == ((), 60)


def test_a_renamed_column_keeps_its_name_in_the_lake(tmp_path):
    text = VALID.replace("note: text", "Remark: {type: text, renamed_from: [note, notes]}")
    text = text.replace("placed_at: ", "seen_at: {renamed_from: placed_at, type: ").replace(
        "timestamptz\n", "timestamptz}\n    partition_by: [day(seen_at)]\n"
    )
    plan = load_plan(write(tmp_path, text))
    _, remark, seen = plan.tables[0].columns
    assert (remark.name, remark.names) == ("note", ("Remark", "notes", "note"))
    assert (seen.name, plan.tables[0].partition_by) == ("placed_at", ("day(placed_at)",))
    assert plan.tables[0].toastable == ("note", "placed_at")
    assert Plan.from_json(plan.to_json()) == plan


def test_another_column_of_an_earlier_name_may_be_excluded(tmp_path):
    text = VALID.replace(
        "note: text", "remark: {type: text, renamed_from: note}\n      note: {exclude: true}"
    )
    table = load_plan(write(tmp_path, text)).tables[0]
    assert table.excluded == ("note",)
    assert [column.source for column in table.columns if column.renamed_from] == ["remark"]


def test_an_environment_is_merged_over_the_file(tmp_path):
    plan = full_plan(tmp_path, "prod")
    assert (plan.trigger_seconds, plan.mode, plan.source_database) == (5, "scheduled", "p")
    with pytest.raises(InputError, match="did you mean 'prod'"):
        full_plan(tmp_path, "prd")


TABLES_OF_DEV = """\
derived: {days: {sql: SELECT order_id AS id FROM orders_current, key: [id]}}
connectors: {sink: {plugin: iceberg-sink, tables: [public.orders], settings: {a: "1"}}}
environments:
  dev:
    tables:
      public.orders: {apply: scheduled, columns: {note: {type: text, mask: hash}}}
      public.extra: {key: [id], columns: {id: bigint}, capture: log}
    derived:
      days: {schedule: rate(1 day)}
      more: {sql: SELECT id FROM extra_current, key: [id]}
    connectors: {sink: {settings: {b: "2"}}}
"""


def test_every_section_is_merged_over_the_file(tmp_path):
    path = write(tmp_path, VALID + TABLES_OF_DEV)
    plain, dev = load_plan(path), load_plan(path, "dev")
    assert plain == load_plan(write(tmp_path, VALID + TABLES_OF_DEV.split("environments:")[0]))
    orders, extra = dev.tables
    assert (orders.key, orders.apply, extra.name) == (("order_id",), "scheduled", "extra")
    assert [(c.name, c.mask) for c in orders.columns][:2] == [("order_id", None), ("note", "hash")]
    assert {each.name: each.schedule for each in dev.derived}.keys() == {"days", "more"}
    assert dev.derived[0].schedule == "rate(1 day)" != plain.derived[0].schedule
    [sink] = dev.connectors
    assert sink.tables == plain.connectors[0].tables
    assert {"a": "1", "b": "2"}.items() <= dict(sink.settings).items()


def test_an_environment_overlays_every_section():
    sections = PipelineFile.model_fields.keys() - {"version", "name", "environments"}
    assert Environment.model_fields.keys() == sections


def test_a_deployment_is_the_plan_and_the_sizes_of_its_environment(tmp_path):
    path = write(tmp_path, FULL.replace("format_version: 3", "format_version: 2"))
    prod, plain = load_deployment(path, "prod"), load_deployment(path)
    assert (prod.plan, plain.plan) == (load_plan(path, "prod"), load_plan(path))
    assert (prod.prefix, plain.prefix) == (f"{prod.plan.name}-prod", prod.plan.name)
    kafka, source = prod.aws.kafka.create, prod.aws.source.create
    assert kafka is not None and source is not None
    assert (kafka.volume_gb, kafka.brokers_per_zone, source.storage_gb) == (9000, 2, 200)
    assert plain.aws.kafka.create is not None and plain.aws.kafka.create.volume_gb == 100


@pytest.mark.parametrize("environment", ["dev", "prod"])
def test_demo_values_are_overlaid_where_they_are_deployed(environment):
    for file in ("shop.yaml", "shop_firehose.yaml"):
        plan = load_deployment(PIPELINES / file, environment).plan
        assert plan.trigger_seconds >= 10
        minutes = shortest_minutes(plan.schedules["apply"])
        assert minutes is not None and minutes >= 15


def test_demo_values_are_not_deployed_as_they_are():
    with pytest.raises(InvalidPipeline, match="starts a Glue job every 1 min"):
        load_deployment(PIPELINES / "shop_firehose.yaml")


def test_a_plan_from_before_the_deployment_can_still_be_read(tmp_path):
    plan = full_plan(tmp_path)
    older = json.dumps({**json.loads(plan.to_json()), "aws": {}})
    assert Plan.from_json(older) == plan


@pytest.mark.parametrize("environment", [None, "prod"])
def test_the_plan_survives_json(tmp_path, environment):
    plan = full_plan(tmp_path, environment)
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_what_we_ship_is_valid(path):
    plan = load_plan(path)
    assert Plan.from_json(plan.to_json()) == plan
    assert path.read_text().startswith("# yaml-language-server: $schema=pipeline.schema.json\n")


def test_what_we_ship_is_complete():
    pagila, shop = load_plan(PIPELINES / "pagila.yaml"), load_plan(PIPELINES / "shop.yaml")
    assert [len(table.columns) for table in shop.tables] == [7, 8, 7]
    assert len(pagila.tables) == 15
    assert pagila.table("country").replica_identity_declared
    assert pagila.table("payment").replica_identity == "full"
    delivered = load_plan(PIPELINES / "shop_firehose.yaml")
    assert {table.delivery for table in delivered.tables} == {"firehose"}
    as_streamed = [replace(t, delivery="stream", apply="each_batch") for t in delivered.tables]
    assert as_streamed == list(shop.tables)
    assert "active" not in {column.name for column in pagila.table("customer").columns}


@pytest.mark.parametrize(
    ("spelling", "schema", "table"),
    [
        ("public.orders", "public", "orders"),
        ("public.a.b", "public", "a.b"),
        ('"my.schema"."a.b"', "my.schema", "a.b"),
        ('"my.schema".a b', "my.schema", "a b"),
        ('public."say ""hi"""', "public", 'say "hi"'),
        ('we"ird.ta"ble"', 'we"ird', 'ta"ble"'),
        ("Größe.Заказы", "Größe", "Заказы"),
        ("public.a(b)*[c]$ \\d+|x", "public", "a(b)*[c]$ \\d+|x"),
        ("public. padded ", "public", " padded "),
        ("public.it's", "public", "it's"),
    ],
)
def test_names_of_every_kind(tmp_path, spelling, schema, table):
    assert parse_table_key(spelling) == (schema, table)
    quoted = spelling.replace("'", "''")
    plan = load_plan(write(tmp_path, VALID.replace("public.orders:", f"'{quoted}':")))
    assert (plan.tables[0].schema, plan.tables[0].table) == (schema, table)


@pytest.mark.parametrize("spelling", ["", ".", "a.", ".a", "a", '"a', '"a"', '"a"b.c', 'a."b'])
def test_no_table_key(spelling):
    with pytest.raises(Refused):
        parse_table_key(spelling)


@pytest.mark.parametrize(
    "spelling",
    ["rate(1 day)", "rate(90 minutes)", "cron(0/5 8-17 ? * MON-FRI *)", "cron(15 10 L * ? 2030)"],
)
def test_schedules_that_eventbridge_takes(spelling):
    assert parse_schedule(f" {spelling} ") == spelling


@pytest.mark.parametrize(
    ("spelling", "minutes"),
    [
        ("rate(1 minute)", 1), ("rate(2 hours)", 120), ("rate(1 day)", 1440),
        ("cron(0 3 * * ? *)", 60), ("cron(0/5 8-17 ? * MON-FRI *)", 5), ("cron(* * * * ? *)", 1),
        ("cron(0,55 * * * ? *)", 5), ("cron(10-20/3 * * * ? *)", 3), ("at(2030-01-01)", None),
    ],
)  # fmt: skip
def test_the_shortest_time_between_two_runs(spelling, minutes):
    assert shortest_minutes(spelling) == minutes


def test_the_committed_schema_is_the_generated_one():
    committed = (PIPELINES / "pipeline.schema.json").read_text()
    assert committed == render_schema(), "run: .venv/bin/cdclake schema > pipelines/..."


def test_the_schema_takes_what_we_ship_and_refuses_an_unknown_key():
    from cdclake.config.yaml_reader import read_document

    validator = jsonschema.Draft202012Validator(pipeline_schema())
    validator.check_schema(pipeline_schema())
    for path in SHIPPED:
        assert not list(validator.iter_errors(read_document(path).values))
    assert list(validator.iter_errors({"version": 1, "nme": "x"}))
    sink = {"plugin": "p.zip", "class": "C", "tables": ["public.t"]}
    settings = {"batch.size": 500, "auto.create": True, "topic": "t"}
    written = {"version": 1, "name": "shop", "connectors": {"s": {**sink, "settings": settings}}}
    assert not list(validator.iter_errors(written))
    assert list(validator.iter_errors({**written, "connectors": {"s": {"settings": {"a": []}}}}))


@pytest.mark.parametrize(
    ("content", "part"),
    [(b"a: \xff\n", "UTF-8"), (b"#" * (1024 * 1024 + 1), "1 MiB"), (None, "cannot be read")],
)
def test_a_file_that_cannot_be_read(tmp_path, content, part):
    path = tmp_path if content is None else tmp_path / "f.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidPipeline, match=part) as caught:
        load_plan(path)
    assert len(caught.value.problems) == 1
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.problems, str(copy)) == (caught.value.problems, str(caught.value))


@pytest.mark.parametrize(
    ("written", "patterns"),
    [
        ("none", ()),
        ("public.*", ("public.*",)),
        ("[public.order_*, 'sales.*']", ("public.order_*", "sales.*")),
    ],
)
def test_new_tables_is_a_pattern_or_a_list(tmp_path, written, patterns):
    file = tmp_path / "shop.yaml"
    file.write_text(
        "version: 1\nname: shop\nsource: {database: shop}\n"
        f"policies: {{new_tables: {written}}}\n"
        "tables: {public.orders: {key: [id], columns: {id: int}}}\n"
    )
    assert load_file(file).policies.new_tables == patterns


@pytest.mark.parametrize("written", ["everything", "3", "{a: b}", "[public.*, 3]", "[none]"])
def test_a_policy_of_new_tables_that_is_no_pattern_is_refused(tmp_path, written):
    document = parse_document(f"policies: {{new_tables: {written}}}\n")
    assert [p for p in find_problems(document) if "pattern" in p.message or "must be" in p.message]
