"""Put records through the real function into a real Iceberg table, read back by DuckDB."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import boto3
import duckdb
import pytest
from pyiceberg.types import StringType

from cdclake.config.resolve import load_plan
from cdclake.errors import InputError
from cdclake.iceberg.schemas import DERIVED_PROPERTY, TableSchema, put_schema
from cdclake.jobs.reader.duck import _secret, extension_file
from cdclake.local.components.installed import REGION
from cdclake.local.firehose.delivery import Delivery
from cdclake.local.firehose.function import LocalFunction
from cdclake.local.firehose.handlers import handler_of
from cdclake.local.firehose.iceberg_tables import LogTables
from cdclake.local.firehose.records import Record
from cdclake.local.process.credentials import Login
from cdclake.plan import Plan
from tests.recorded.firehose import Kept, RecordedTopic
from tests.source_tree import PROJECT
from tests.unit.local.aws_process import KEY_ID, SECRET, AwsProcess
from tests.unit.local.test_aws_server import BUCKET

COLUMNS = """{id: bigint, userId: text, price: "numeric(10,2)", at: timestamptz, local: timestamp,
      day: date, ok: boolean, ratio: double precision, small: int, body: jsonb}"""
FILE = f"""\
version: 1
name: shop
puts:
  clicks:
    columns: {COLUMNS}
    key: [id]
    partition_by: [day(at), hour(local), month(day), ok]
    function: {{retries: 0}}
"""
CLICK = {
    "id": 2**60, "userId": "ü", "price": "12345678.90", "at": "2026-11-22T21:00:00.5+02:00",
    "local": "1969-12-31T23:59:59.999999", "day": "2026-11-22", "ok": True, "ratio": 0.1,
    "small": -5, "body": {"a": [1, None]},
}  # fmt: skip
ARRIVED_MS = 1_790_000_000_123


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsProcess]:
    running = AwsProcess(tmp_path_factory.mktemp("aws") / "aws").start()
    client = boto3.client(
        "s3", endpoint_url=running.url, region_name=REGION, aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET,
    )  # fmt: skip
    client.create_bucket(Bucket=BUCKET)
    yield running
    running.kill()


@pytest.fixture(scope="module")
def tables(server: AwsProcess) -> LogTables:
    made = LogTables(server.url, server.url, Login(KEY_ID, SECRET), "lake")
    made._catalog.create_namespace("lake", {"location": f"s3://{BUCKET}/warehouse"})
    return made


def plan_of(text: str, folder: Path) -> Plan:
    (folder / "shop.yaml").write_text(text)
    return load_plan(folder / "shop.yaml")


def create(tables: LogTables, plan: Plan, name: str) -> None:
    for table in plan.puts[0].targets:
        tables.create(put_schema(table), f"s3://{BUCKET}/warehouse/{name}-{table.name}")


def deliver(tables: LogTables, plan: Plan, folder: Path, *bodies: bytes) -> Kept:
    [put] = plan.puts
    records = [Record(0, number, ARRIVED_MS, body) for number, body in enumerate(bodies)]
    kept, topic = Kept(), RecordedTopic(records)
    handler = handler_of(put.stream, plan, folder, dict)
    delivery = Delivery(
        put.stream, "lake", source=topic, function=LocalFunction(handler, put.stream),
        tables=tables, errors=kept,
    )  # fmt: skip
    delivery.drain()
    assert topic.committed == {0: len(records)}
    return kept


def test_values_arrive_exactly_and_what_does_not_fit_is_kept(
    server: AwsProcess, tables: LogTables, tmp_path: Path
) -> None:
    plan = plan_of(FILE, tmp_path)
    create(tables, plan, "clicks")
    bad = json.dumps({**CLICK, "price": 1.005}).encode()
    kept = deliver(tables, plan, tmp_path, json.dumps(CLICK).encode(), bad, b'{"id": 1}')
    [(kind, failure)] = kept.failures
    assert (kind, failure.raw) == ("processing-failed", bad)
    with duckdb.connect() as session:
        for extension in ("avro", "httpfs", "iceberg"):
            session.execute(f"LOAD '{extension_file(extension)}'")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
            patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
            patch.setenv("AWS_DEFAULT_REGION", REGION)
            session.execute(_secret(server.url))
            location = tables._load("clicks").metadata_location
            session.execute("SET TimeZone = 'UTC'")
            rows = session.execute(f"FROM iceberg_scan('{location}') ORDER BY id").fetchall()
    arrived = dt.datetime.fromtimestamp(ARRIVED_MS / 1000, dt.UTC)
    empty, full = rows
    assert empty == (1, *[None] * 9, arrived)
    assert full == (
        2**60, "ü", Decimal("12345678.90"),
        dt.datetime(2026, 11, 22, 19, 0, 0, 500_000, dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.date(2026, 11, 22),
        True, 0.1, -5, '{"a":[1,null]}', arrived,
    )  # fmt: skip
    fields = [field.name for field in tables._load("clicks").spec().fields]
    assert fields == ["at_day", "local_hour", "day_month", "ok"]


ROUTED = """\
version: 1
name: shop
lake: {database: lake}
puts:
  events:
    route: kind
    tables:
      bought: {columns: {id: int, kind: text}, values: [order, refund]}
      viewed: {columns: {page: text}}
"""


def test_records_go_to_the_tables_that_a_field_selects(tables: LogTables, tmp_path: Path) -> None:
    plan = plan_of(ROUTED, tmp_path)
    create(tables, plan, "events")
    lost = b'{"kind": "sold", "id": 3}'
    kept = deliver(
        tables, plan, tmp_path, b'{"kind": "order", "id": 1}', b'{"kind": "viewed", "page": "/"}',
        lost, b'{"kind": "refund", "id": 2}',
    )  # fmt: skip
    assert [(kind, failure.raw) for kind, failure in kept.failures] == [("processing-failed", lost)]
    bought, viewed = (tables._load(name).scan().to_arrow() for name in ("bought", "viewed"))
    assert bought.select(["id", "kind"]).to_pylist() == [
        {"id": 1, "kind": "order"}, {"id": 2, "kind": "refund"},
    ]  # fmt: skip
    assert viewed.select(["page"]).to_pylist() == [{"page": "/"}]


LINE = "GET /cart 200 0.012"
FIRELENS = {  # as FireLens sends a line on Fargate
    "container_id": "d3f1-1", "container_name": "app", "source": "stdout", "log": LINE,
    "ecs_cluster": "shop", "ecs_task_definition": "shop:7",
    "ecs_task_arn": "arn:aws:ecs:eu-central-1:111122223333:task/shop/d3f1",
}  # fmt: skip


def test_records_of_firelens_arrive_with_the_documented_settings(
    tables: LogTables, tmp_path: Path
) -> None:
    section = (PROJECT / "docs" / "puts.md").read_text().split("## From ECS with FireLens")[1]
    [entry] = re.findall(r"```yaml\n(puts:.*?)```", section, re.DOTALL)
    text = f"version: 1\nname: shop\n{entry}"
    [line] = re.findall(r"Regex +(.*)", section)  # Onigmo spells named groups without the P
    parsed = re.fullmatch(line.replace("(?<", "(?P<"), LINE)
    assert parsed is not None
    types = dict(each.split(":") for each in re.findall(r"Types +(.*)", section)[0].split())
    makes = {"integer": int, "float": float, "string": str}
    typed = {n: makes[types.get(n, "string")](v) for n, v in parsed.groupdict().items()}
    plan = plan_of(text, tmp_path)
    create(tables, plan, "requests")
    refused = [FIRELENS, {**FIRELENS, **typed}, parsed.groupdict()]
    bodies = [json.dumps(each).encode() for each in (*refused, typed)]
    kept = deliver(tables, plan, tmp_path, *bodies)
    assert [failure.raw for _, failure in kept.failures] == bodies[:-1]
    ignoring = plan_of(f"{text}    unknown_fields: ignore\n", tmp_path)
    assert deliver(tables, ignoring, tmp_path, bodies[1]).failures == []
    found = tables._load("requests").scan().to_arrow().select(list(typed)).to_pylist()
    assert found == [typed, typed]
    assert typed == {"method": "GET", "path": "/cart", "status": 200, "seconds": 0.012}


def test_a_broken_handler_fails_its_records_with_its_message(
    tables: LogTables, tmp_path: Path
) -> None:
    folder = tmp_path / "clicks"
    folder.mkdir()
    (folder / "handler.py").write_text("def handler(event, context):\n    return 1 / 0\n")
    plan = plan_of(FILE + "    transform: clicks\n", tmp_path)
    create(tables, plan, "clicks")
    kept = deliver(tables, plan, tmp_path, b'{"id": 1}', b'{"id": 2}')
    assert [failure.message for _, failure in kept.failures] == [
        "ZeroDivisionError: division by zero"
    ] * 2


def test_a_column_is_added_but_neither_type_nor_partitions_change(
    tables: LogTables, tmp_path: Path
) -> None:
    text = "version: 1\nname: shop\nputs:\n  visits: {columns: {id: int}}\n"
    create(tables, plan_of(text, tmp_path), "visits")
    wider = text.replace("id: int", "id: int, page: text")
    create(tables, plan_of(wider, tmp_path), "visits")
    assert tables.schema("visits").column_names == ["id", "arrived_at", "page"]
    kept = deliver(tables, plan_of(wider, tmp_path), tmp_path, b'{"id": 1, "page": "/"}')
    assert kept.failures == []
    with pytest.raises(InputError, match="the column id of visits is int"):
        create(tables, plan_of(text.replace("int", "bigint"), tmp_path), "visits")
    parted = text.replace("{columns", "{partition_by: [id], columns")
    with pytest.raises(InputError, match="visits has other partitions"):
        create(tables, plan_of(parted, tmp_path), "visits")


def test_no_record_is_put_into_a_removed_source_table(tables: LogTables, tmp_path: Path) -> None:
    plan = plan_of("version: 1\nname: shop\nputs:\n  sales: {columns: {id: int}}\n", tmp_path)
    schema = TableSchema(name="sales", columns=(("id", "int"),))
    tables.create(schema, f"s3://{BUCKET}/warehouse/sales")
    with tables._load("sales").update_schema() as change:
        change.add_column("cdc_position", StringType())
    with pytest.raises(InputError, match="the lake has a changelog or state sales"):
        create(tables, plan, "sales")
    assert tables.schema("sales").column_names == ["id", "cdc_position"]


def test_no_record_is_put_into_a_removed_derived_table(tables: LogTables, tmp_path: Path) -> None:
    plan = plan_of("version: 1\nname: shop\nputs:\n  totals: {columns: {id: int}}\n", tmp_path)
    create(tables, plan, "totals")
    with tables._load("totals").transaction() as change:
        change.set_properties({DERIVED_PROPERTY: "true"})
    with pytest.raises(InputError, match="the lake has a derived table totals"):
        create(tables, plan, "totals")
