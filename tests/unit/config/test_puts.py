"""Put tables in a pipeline file: what their plan is, and what is refused."""

# ruff: noqa: E501  (the cases stand in rows)
from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.config.problems import InvalidPipeline
from cdclake.config.resolve import load_plan
from cdclake.firehose.throttle_notes import throttle_notes
from cdclake.iceberg.schemas import appended_schemas
from cdclake.plan import Plan
from tests.source_tree import PROJECT
from tests.unit.config.mistakes import assert_remedies, assert_reported


def file(entry: str = "{columns: {id: int}}", more: str = "", name: str = "clicks") -> str:
    return f"version: 1\nname: shop\n{more}puts:\n  {name}: {entry}\n"


def plan_of(text: str, folder: Path, environment: str | None = None) -> Plan:
    path = folder / "pipeline.yaml"
    path.write_text(text)
    return load_plan(path, environment)


def test_a_file_may_have_put_tables_alone(tmp_path: Path) -> None:
    entry = "{source: kinesis, columns: {userId: int, at: timestamptz}, key: [userId], partition_by: [day(at), userId], retry_seconds: 5}"
    plan = plan_of(file(entry, "firehose: {buffer: {seconds: 7}}\n"), tmp_path)
    [put] = plan.puts
    [table] = put.targets
    assert (plan.tables, plan.deliveries, plan.streams) == ((), (), (put.stream,))
    assert (put.name, put.tables, table.name) == ("clicks", ("clicks",), "clicks")
    assert (table.key, table.values, put.route) == (("userid",), (), None)
    stream = put.stream
    assert (stream.source, stream.topic, stream.table) == ("kinesis", "clicks", "clicks")
    assert (stream.buffer_seconds, stream.retry_seconds) == (7, 5)
    [schema] = appended_schemas(plan)
    assert schema.columns == (("userid", "int"), ("at", "timestamp"), ("arrived_at", "timestamp"))
    assert schema.partition_by == ("day(at)", "userid")
    assert schema.properties["format-version"] == "2"
    assert Plan.from_json(plan.to_json()) == plan


def test_the_default_partition_is_the_day_of_arrival(tmp_path: Path) -> None:
    [put] = plan_of(file(), tmp_path).puts
    [table] = put.targets
    assert (table.partition_by, table.key) == (("day(arrived_at)",), ())
    assert put.unknown_fields == "refuse"


def test_one_stream_may_have_several_tables(tmp_path: Path) -> None:
    entry = "{route: kind, tables: {clicks: {columns: {id: int}}, orders: {columns: {id: int, kind: text}, key: [id], values: [order, refund]}}}"
    plan = plan_of(file(entry, name="events"), tmp_path)
    [put] = plan.puts
    assert (put.name, put.route, put.database) == ("events", "kind", "cdc_iceberg")
    assert (put.stream.tables, put.stream.routed, put.stream.table) == (
        ("clicks", "orders"),
        True,
        None,
    )
    assert [table.values for table in put.targets] == [("clicks",), ("order", "refund")]
    clicks, orders = appended_schemas(plan)
    assert (clicks.name, clicks.columns) == ("clicks", (("id", "int"), ("arrived_at", "timestamp")))
    assert orders.columns == (("id", "int"), ("kind", "string"), ("arrived_at", "timestamp"))
    assert Plan.from_json(plan.to_json()) == plan


def test_an_environment_overrides_an_entry(tmp_path: Path) -> None:
    text = file() + "environments: {dev: {puts: {clicks: {buffer: {seconds: 3}}}}}\n"
    assert plan_of(text, tmp_path, "dev").puts[0].stream.buffer_seconds == 3


CASES = {
    # name: (file, line, column, part of the message, part of the remedy)
    "a removed key": (file("{columns: {id: int}, backup: all}"), 4, 32, "`backup` was removed", "source: kinesis"),
    "no columns": (file("{}"), 4, 3, "`columns` is missing", "add"),
    "a route without tables": (file("{route: kind}"), 4, 19, "`tables` is missing", "`columns:` for each"),
    "tables without a route": (file("{tables: {a: {columns: {id: int}}}}"), 4, 12, "`route` is missing", "`route: FIELD`"),
    "no table": (file("{route: kind, tables: {}}"), 4, 25, "`tables` is empty", "add"),
    "tables next to columns": (file("{columns: {id: int}, route: kind, tables: {a: {columns: {id: int}}}}"), 4, 12, "its own `columns`", "move it into `tables:`"),
    "a key of all tables": (file("{key: [id], route: kind, tables: {a: {columns: {id: int}}}}"), 4, 12, "its own `key`", "move it into `tables:`"),
    "a table without columns": (file("{route: kind, tables: {a: {}}}"), 4, 34, "`columns` is missing", "add"),
    "a value twice": (file("{route: kind, tables: {a: {columns: {id: int}}, b: {columns: {id: int}, values: [b, a]}}}"), 4, 95, "the value 'a' also selects 'a'", "different"),
    "a value twice in a table": (file("{route: kind, tables: {a: {columns: {id: int}, values: [x, x]}}}"), 4, 58, "'x' is listed twice", "remove"),
    "a route that is no text": (file("{route: kind, tables: {a: {columns: {kind: int}}}}"), 4, 54, "selects the table by a text, but is int", "`text`"),
    "a key of a table that is no column": (file("{route: kind, tables: {a: {columns: {id: int}, key: [kind]}}}"), 4, 64, "does not declare 'kind'", "id"),
    "a table of two streams": (file("{route: kind, tables: {a: {columns: {id: int}}}}", more="weblogs: {a: {route: day}}\n"), 5, 34, "'a' would also be that of the web logs 'a'", "rename"),
    "no column": (file("{columns: {}}"), 4, 12, "`columns` is empty", "add"),
    "a name": (file(name="Clicks"), 4, 3, "invalid put table name", "lowercase"),
    "an unknown type": (file("{columns: {id: integr}}"), 4, 26, "unknown type 'integr'", ""),
    "a type of tables only": (file("{columns: {id: money}}"), 4, 26, "no columns of type 'money'", "numeric(p,s)"),
    "a numeric without digits": (file("{columns: {id: numeric}}"), 4, 26, "no columns of type 'numeric'", "numeric(p,s)"),
    "an array": (file("{columns: {id: 'int[]'}}"), 4, 26, "no columns of type 'int[]'", "jsonb"),
    "a rounding time": (file("{columns: {id: timestamptz(3)}}"), 4, 26, "no columns of type", "timestamptz"),
    "columns of one name": (file("{columns: {id: int, ID: int}}"), 4, 31, "the column 'id' would also be that of 'id'", "rename"),
    "the arrival": (file("{columns: {arrived_at: date}}"), 4, 22, "that of the time of arrival", "rename"),
    "the default partition": (file("{columns: {id: int, arrived_at_day: text}}"), 4, 31, "would name the partition by day(arrived_at) 'arrived_at_day', too", "rename"),
    "a partition in a table": (file("{route: k, tables: {a: {columns: {At_hour: int, At: timestamp}, partition_by: [hour(At)]}}}"), 4, 45, "would name the partition by hour(At) 'at_hour', too", "choose another transform"),
    "a column of Iceberg's": (file("{columns: {id: int, _pos: int}}"), 4, 31, "the column '_pos' would be '_pos' in the lake, which is reserved", "rename"),
    "a column of the lake's": (file("{columns: {id: int, CDC_op: text}}"), 4, 31, "the column 'CDC_op' would be 'cdc_op' in the lake, which is reserved", "rename"),
    "a key that is no column": (file("{columns: {id: int}, key: [ids]}"), 4, 38, "does not declare 'ids'", "id"),
    "a key twice": (file("{columns: {id: int}, key: [id, id]}"), 4, 32, "'id' is listed twice", "remove"),
    "a partition by no column": (file("{columns: {id: int}, partition_by: [day(at)]}"), 4, 47, "does not declare 'at'", "declare"),
    "a partition of another type": (file("{columns: {id: int}, partition_by: [day(id)]}"), 4, 47, "day() does not support 'id'", "date"),
    "a partition twice": (file("{columns: {id: date}, partition_by: [day(id), month(id)]}"), 4, 57, "partitions 'id' again", "finer"),
    "a bucket": (file('{columns: {id: int}, partition_by: ["bucket(4, id)"]}'), 4, 47, "cannot be partitioned by bucket()", "year"),
    "a folder above": (file("{columns: {id: int}, transform: ../x}"), 4, 43, "invalid folder '../x'", "relative"),
    "more than a function takes": (file("{columns: {id: int}, function: {mib: 1}}"), 4, 48, "1 MiB of records of 8 bytes may take 43.3 MB per call", "`function: {mib: 0.2}`"),
    "more than a function takes from Kinesis": (file("{source: kinesis, columns: {id: int, page: text, at: timestamptz}, function: {mib: 1}}"), 4, 94, "records of 46 bytes", "`function: {mib: 0.5}`"),
    "more than a function takes in one table": (file("{route: k, tables: {a: {columns: {%s: int}}, b: {columns: {id: int}}}, function: {mib: 1}}" % ("x" * 99)), 4, 195, "records of 8 bytes", "`function: {mib: 0.2}`"),
    "less than Firehose collects": (file("{columns: {id: int}, function: {mib: 0.1}}"), 4, 48, "`mib` cannot be 0.1", "0.2"),
    "a region without Firehose": (file(more="aws: {region: mx-central-1}\n"), 3, 15, "Firehose does not write Iceberg tables in mx-central-1", "another region"),
    "a table of web logs": (file(more="weblogs: {clicks: {route: day}}\n"), 5, 3, "already has the name 'clicks'", "rename the put table"),
    "a table of the database": (
        file(name="orders", more="source: {database: shop}\ntables:\n  public.orders: {key: [id], columns: {id: int}}\n"),
        7, 3, "'orders' would also be that of 'public.orders'", "rename",
    ),
    "a derived table": (
        file() + "derived: {clicks: {sql: SELECT 1 AS one, key: [one], schedule: rate(1 day)}}\n", 5, 11, "already has 'clicks'", "rename",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "remedy"), CASES.values(), ids=CASES)
def test_a_mistake_is_reported_where_it_is(
    text: str, line: int, column: int, message: str, remedy: str
) -> None:
    assert_reported(text, line, column, message, remedy)
    assert_remedies(text)


def test_a_transform_must_have_its_handler(tmp_path: Path) -> None:
    text = file("{columns: {id: int}, transform: t/a}")
    with pytest.raises(InvalidPipeline, match=r"4:43.*there is no handler\.py in .*t/a"):
        plan_of(text, tmp_path)
    (tmp_path / "t" / "a").mkdir(parents=True)
    (tmp_path / "t" / "a" / "handler.py").touch()
    assert plan_of(text, tmp_path).puts[0].transform == "t/a"


def test_calls_are_small_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    [put] = plan_of(file(), tmp_path).puts
    assert put.stream.function_mib == 0.2
    settings, columns = "firehose: {function: {mib: 1}}\n", f"{{columns: {{{'x' * 99}: int}}}}"
    [put] = plan_of(file(columns, settings), tmp_path).puts
    assert put.stream.function_mib == 1 and type(put.stream.function_mib) is int


def test_direct_put_above_its_first_limit_is_noted_and_not_refused(tmp_path: Path) -> None:
    """An append-only stream scales: its producers retry until it has."""
    entry = "{columns: {id: int}, mib_per_second: 6}"
    [note] = throttle_notes(plan_of(file(entry), tmp_path))
    assert "clicks: Direct PUT begins with 5 MiB" in note and "producers have to retry" in note
    for other in ("{columns: {id: int}}", entry.replace("{c", "{source: kinesis, c", 1)):
        assert not [*throttle_notes(plan_of(file(other), tmp_path))]


def test_the_example_is_valid() -> None:
    assert [table.name for table in load_plan(PROJECT / "pipelines" / "puts.yaml").puts]
