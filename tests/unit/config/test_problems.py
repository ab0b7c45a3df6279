"""A case for each kind of mistake: where it is reported, what is said, what to do."""

# ruff: noqa: E501  (the cases stand in rows)
from __future__ import annotations

import json

import pytest

from cdclake.config.model import PipelineFile
from cdclake.config.resolve import find_problems
from cdclake.config.yaml_reader import parse_document
from tests.unit.config.mistakes import assert_remedies, assert_reported
from tests.unit.config.pipelines import VALID, below, replaced, top

in_table = below("public.orders:")
in_columns = below("columns:")
last = VALID.__add__
OTHER = "    key: [id]\n    columns: {id: bigint}\n"
BULK = ("{database: shop}", "{database: shop, snapshot: {mode: bulk}}")

CASES = {
    # name: (file, line, column, part of the message, part of the remedy)
    "not YAML": (replaced("name: shop", "name: [shop"), 3, 7, "not valid YAML", "correct the YAML"),
    "empty": ("", 1, 1, "the file is empty", "version: 1"),
    "a list": ("- a\n", 1, 1, "not a mapping", "version: 1"),
    "two documents": (last("---\na: 1\n"), 11, 1, "another document", "one pipeline per file"),
    "control character": (replaced("name: shop", "name: \x07"), 2, 1, r"'\x07'", "remove it"),
    "duplicate key": (last("name: two\n"), 11, 1, "'name' is duplicated", "line 2"),
    "tag": (replaced("name: shop", "name: !!python/name:os.x s"), 2, 7, "YAML tag", "remove"),
    "merge key": (top("<<: {}"), 2, 1, "merge keys", "write the keys out"),
    "unknown key": (top("strem: {}"), 2, 1, "unknown key 'strem'", "did you mean 'stream'?"),
    "name of the model's field": (
        last("connectors: {out: {connector_class: x, plugin: p.zip, tables: []}}\n"), 11, 20,
        "unknown key 'connector_class'", "use one of",
    ),
    "values of no type": (
        in_table("    checks: [{in: {status: [[1]]}}]"), 6, 29,
        "`status` must be text or a whole number or a number or true or false, not a list", "one value",
    ),
    "bound of no type": (
        in_table("    checks: [{range: {total: {min: [1]}}}]"), 6, 31,
        "`min` must be a whole number or a number or text, not a list", "one value",
    ),
    "unknown key below": (in_table("    zzz: red"), 6, 5, "unknown key", "use one of name"),
    "key of a section": (
        top("history_days: 3"), 2, 1, "unknown key", "did you mean `lake.history_days`? move it under `lake:`",
    ),
    "key of the source": (top("snapshot: {mode: bulk}"), 2, 1, "'snapshot'", "`source.snapshot`"),
    "key of a table": (
        top("publish: {orders: {hudi: {}}}"), 2, 1, "unknown key 'publish'",
        "did you mean `tables.NAME.publish`? move it under a table of `tables:`",
    ),
    "key of a table, like another": (top("delivery: firehose"), 2, 1, "'delivery'", "`tables.NAME.delivery`"),
    "key of a section and of a table": (
        top("checks: []"), 2, 1, "unknown key", "`schedules.checks` or `tables.NAME.checks`? move it there",
    ),
    "section below another": (
        top("aws: {lake: {lake_formation: true}}"), 2, 7, "unknown key 'lake'",
        "did you mean `lake` at the top level? move it there",
    ),
    "section below a table": (in_table("    derived: {}"), 6, 5, "'derived'", "at the top level?"),
    "overlay of a table's key": (
        top("environments: {dev: {publish: []}}"), 2, 22, "unknown key 'publish'", "`tables.NAME.publish`",
    ),
    "overlay of the name": (
        top("environments: {dev: {name: other}}"), 2, 22, "another pipeline `name`", "remove it",
    ),
    "password": (top("source_password: x"), 2, 1, "source_password", "CDCLAKE_SOURCE_DSN"),
    "missing": (replaced("name: shop\n", ""), 1, 1, "`name` is missing", "add `name:`"),
    "missing below": (replaced("{database: shop}", "{}"), 3, 1, "`database` is missing", "add"),
    "empty source": (
        replaced(" {database: shop}", ""), 3, 1, "`source` must be a mapping, not nothing", "write `database: NAME` beneath it",
    ),
    "server of the source": (
        replaced("shop}", "shop, port: 5432}"), 3, 26, "unknown key 'port'",
        "on AWS `aws: {source: {existing: {endpoint, port, secret_arn}}}`",
    ),
    "no tables": (VALID.split("tables:")[0] + "tables: {}\n", 4, 1, "`tables` is empty", "add"),
    "pipeline name": (replaced("name: shop", "name: My_shop"), 2, 7, "`name` cannot", "2 to 21"),
    "version as text": (replaced("version: 1", 'version: "1"'), 1, 10, "whole number", "quotes"),
    "version true": (replaced("version: 1", "version: true"), 1, 10, "whole number", "digits"),
    "version 2": (replaced("version: 1", "version: 2"), 1, 10, "`version` cannot be 2", "`1`"),
    "number as text": (
        top('stream: {trigger_seconds: "10"}'), 2, 27, "must be a whole number, not '10'", "quotes",
    ),
    "number true": (top("stream: {trigger_seconds: true}"), 2, 27, "not true", "digits"),
    "trigger 0": (top("stream: {trigger_seconds: 0}"), 2, 27, "cannot be 0", "equal to 1"),
    "trigger 3601": (top("stream: {trigger_seconds: 3601}"), 2, 27, "3601", "equal to 3600"),
    "history 0": (top("lake: {history_days: 0}"), 2, 22, "`history_days`", "equal to 1"),
    "stop after 0": (top("policies: {stop_table_after: 0}"), 2, 30, "cannot be 0", "equal to 1"),
    "empty policy": (top("policies: {not_representable: }"), 2, 12, "has no value", "or `null`"),
    "mode": (top("stream: {mode: always-on}"), 2, 16, "did you mean 'always_on'", "`scheduled`"),
    "empty section": (top("stream:"), 2, 1, "`stream` must be a mapping", "name: value"),
    "reader twice": (top("lake: {readers: [spark, spark]}"), 2, 8, "twice", "remove one"),
    "no reader": (top("lake: {readers: []}"), 2, 8, "`readers` is empty", "add at least one"),
    "reserved database": (
        top("lake: {database: system}"), 2, 18, "'system' is reserved", "`system_lake`",
    ),
    "lake database": (top("lake: {database: My-Lake}"), 2, 18, "invalid lake name", "like `my_lake`"),
    "version 3, redshift": (
        top("lake: {format_version: 3, readers: [spark, redshift]}"), 2, 24, "Redshift does not support", "without redshift",
    ),
    "unknown reader": (top("lake: {readers: [spark, hive]}"), 2, 25, "cannot be 'hive'", "clickhouse"),
    "version 3, athena": (top("lake: {format_version: 3}"), 2, 24, "Athena does not support", "readers"),
    "version 3, firehose": (
        top("lake: {format_version: 3, readers: [spark]}") + "    delivery: firehose\n",
        12, 15, "Firehose cannot write 'public.orders' with format version 3", "`delivery: stream`",
    ),
    "bulk, firehose": (
        last("    delivery: firehose\n").replace(*BULK), 11, 15, "which Firehose delivers", "stream` here",
    ),
    "bulk, cut": (
        in_columns("      x: {type: text, mask: truncate(3)}").replace(*BULK),
        8, 7, "cannot truncate values", "{mode: initial}` under `source:`, or `mask: hash` here",
    ),
    "bulk, type": (
        in_columns("      x: hstore").replace(*BULK), 8, 10, "cannot write hstore", "`exclude: true`",
    ),
    "at schedule": (top("schedules: {apply: at(2030-01-01)}"), 2, 20, "runs only once", "rate(5"),
    "no schedule": (top("schedules: {apply: hourly}"), 2, 20, "invalid schedule", "cron(0 3"),
    "rate 1 minutes": (top("schedules: {apply: rate(1 minutes)}"), 2, 20, "EventBridge", "minute)"),
    "rate of weeks": (top("schedules: {apply: rate(2 weeks)}"), 2, 20, "invalid rate", "rate(1 hour)"),
    "cron of 5": (top("schedules: {apply: cron(0 3 * * *)}"), 2, 20, "has 5", "day of week, year"),
    "cron without ?": (top("schedules: {apply: cron(0 3 * * * *)}"), 2, 20, "must be `?`", "`?`"),
    "cron's last working day of a week": (
        top("schedules: {apply: cron(0 3 ? * LW *)}"), 2, 20, "invalid day of week 'LW'", "1 to 7",
    ),
    "cron with a question in a list": (
        top("schedules: {apply: 'cron(0 3 1,? * MON *)'}"), 2, 20, "must be `?`", "`?`",
    ),
    "cron hour 24": (top("schedules: {apply: cron(0 24 * * ? *)}"), 2, 20, "invalid hours '24'", "0 to 23"),
    "overlay": (
        top("environments: {dev: {stream: {trigger_seconds: 0}}}"), 2, 48, "cannot be 0", "equal",
    ),
    "one that only an environment has": (
        last("environments: {dev: {tables: {public.orders: {delivery: firehose}}}}\n").replace(
            "public.orders:\n", "public.orders:\n    apply: each_batch\n", 1
        ),
        6, 12, "in the environment 'dev': 'public.orders' has no batches", "remove",
    ),
    "overlay of no section": (
        top("environments: {dev: {tabels: {}}}"), 2, 22, "unknown key 'tabels'", "did you mean 'tables'?",
    ),
    "overlay of a table": (
        top("environments: {dev: {tables: {public.orders: {columns: {note: txet}}}}}"),
        2, 63, "unknown type 'txet'", "write `enum`",
    ),
    "overlay's key of a table": (
        top("environments: {dev: {tables: {public.orders: {aply: scheduled}}}}"),
        2, 47, "unknown key 'aply'", "did you mean 'apply'?",
    ),
    "overlay adds half a table": (
        top("environments: {dev: {tables: {public.x: {key: [id]}}}}"), 2, 31, "`columns` is missing", "add",
    ),
    "overlay's table meets another": (
        top("environments: {dev: {tables: {public.orders: {partition_by: [day(at)]}}}}"),
        2, 62, "'at'", "declare it",
    ),
    "overlay of derived": (
        top("environments: {dev: {derived: {days: {sql: SELECT 1 FROM nothing, key: [day]}}}}"),
        2, 44, "reads 'nothing'", "under `tables:`",
    ),
    "overlay of connectors": (
        top("environments: {dev: {connectors: {lake: {plugin: iceberg-sink, tables: [public.order]}}}}"),
        2, 73, "the file has no table 'public.order'", "'public.orders'",
    ),
    "overlay holds a password": (
        top("environments: {dev: {connectors: {a: {plugin: p.zip, class: io.X, tables: [public.orders],"
            " settings: {url: 'postgresql://u:secret@h/d'}}}}}"),
        2, 108, "the setting 'url' holds a password", "Secrets Manager",
    ),
    "overlay meets the rest": (
        top("environments: {dev: {lake: {format_version: 3}}}"), 2, 45, "Athena does not", "readers",
    ),
    "environment's name": (top("environments: {Prod_1: {}}"), 2, 16, "invalid environment name", "1 to 10"),
    "empty overlay": (last("environments:\n  dev:\n"), 12, 3, "`dev` must be a mapping", "beneath"),
    "no schema": (last("  items:\n" + OTHER), 11, 3, "not `schema.table`", "`public.items`"),
    "bad quotes": (last("  'public.\"a':\n" + OTHER), 11, 3, "not `schema.table`", "a.b"),
    "our schema": (last("  cdclake.signal:\n" + OTHER), 11, 3, "cdclake's own", "remove this"),
    "system schema": (last("  pg_catalog.x:\n" + OTHER), 11, 3, "is a system schema", "remove this"),
    "name of 64 bytes": (last(f"  public.{'é' * 32}:\n{OTHER}"), 11, 3, "63 bytes", "as PostgreSQL"),
    "same table": (
        last('  \'"public"."orders"\':\n    name: other\n' + OTHER), 11, 3, "same table", "remove",
    ),
    "same lake name": (
        last("  sales.Orders:\n" + OTHER),
        11, 3, "'sales.Orders' and 'public.orders' would both have 'orders'",
        "add `name: sales_orders` to 'sales.Orders'",
    ),
    "meets a generated name": (
        last("  public.orders_history:\n" + OTHER),
        11, 3, "'public.orders_history' and 'public.orders' would both have 'orders_history'",
        "add `name: public_orders_history_table`",
    ),
    "name meets": (last("  a.b:\n    name: orders\n" + OTHER), 12, 5, "both have", "`name: a_b`"),
    "quarantine": (
        last("  public.cdclake_quarantine:\n" + OTHER), 11, 3, "which is reserved", "add `name: public_",
    ),
    "name override": (in_table("    name: Orders-1"), 6, 11, "invalid lake name", "like `orders_1`"),
    "same topic": (
        last('  public.a b:\n' + OTHER + "  public.a$b:\n" + OTHER),
        14, 3, "share the topic 'shop.public.a_b'", "another pipeline file",
    ),
    "no key": (replaced("    key: [order_id]\n", ""), 5, 3, "`key` is missing", "identity: full"),
    "empty key": (replaced("[order_id]", "[]"), 6, 5, "`key` is empty", "identity: full"),
    "key undeclared": (replaced("[order_id]", "[orderid]"), 6, 11, "not declare", "'order_id'?"),
    "key twice": (replaced("[order_id]", "[order_id, order_id]"), 6, 21, "twice", "remove one"),
    "key a number": (replaced("[order_id]", "[order_id, 7]"), 6, 21, "must be text", "in quotes"),
    "key excluded": (
        replaced("order_id: bigint", "order_id: {exclude: true}"), 6, 11, "is excluded", "`exclude`",
    ),
    "key masked": (
        replaced("order_id: bigint", "order_id: {type: text, mask: hash}"), 6, 11, "masked", "`mask`",
    ),
    "unknown type": (
        replaced("note: text", "note: txet"), 9, 13, "unknown type 'txet', did you mean 'text'",
        "write `enum` for an enum, the base type for a domain",
    ),
    "type's parameters": (replaced("note: text", "note: text(5)"), 9, 13, "not accept", "`text`"),
    "type cut off": (
        in_table("    apply: scheduled").replace("note: text", "note: numeric(12"),
        10, 13, "cut off at its comma", "quote it",
    ),
    "no type": (in_columns("      extra: {}"), 8, 7, "the column has no type", "`exclude: true`"),
    "a list as column": (in_columns("      extra: []"), 8, 7, "a column must be its type", "mask: hash"),
    "case twins": (in_columns("      NOTE: text"), 10, 7, "both be 'note'", "rename `note` in the source"),
    "case twins, polled": (
        in_columns("      PLACED_AT: timestamptz").replace(
            "  public.orders:\n",
            "  public.orders:\n    capture: {poll: {by: placed_at, every: rate(1 day)}}\n",
        ),
        12, 7, "both be 'placed_at'", "`placed_at: {exclude: true}`",
    ),
    "reserved": (in_columns("      cdc_op: text"), 8, 7, "reserved", "`cdc_op: {exclude: true}`"),
    "metadata column": (in_columns("      _file: text"), 8, 7, "reserved", "rename it"),
    "reserved by an earlier name": (
        in_columns("      op: {type: text, renamed_from: cdc_op}"), 8, 7, "'cdc_op' in the lake", "op:",
    ),
    "the lake's name of an earlier one": (
        in_columns("      text: {type: text, renamed_from: NOTE}"), 10, 7, "both be 'note'", "exclude",
    ),
    "renamed from a declared one": (
        in_columns("      text: {type: text, renamed_from: note}"),
        8, 40, "the earlier name 'note' is also that of the column 'note'", "or the line of `note`",
    ),
    "renamed in case only": (
        in_columns("      Mail: {type: text, renamed_from: mail}"),
        8, 40, "the earlier name 'mail' is also that of the column 'Mail'", "remove this",
    ),
    "renamed from one name twice": (
        in_columns("      a: {type: text, renamed_from: [b, b]}"), 8, 23, "the earlier name 'b'", "remove",
    ),
    "varbit in a key": (
        replaced("order_id: bigint", "order_id: varbit(8)"),
        6, 11, "the key column 'order_id' of 'public.orders' is a varbit", "choose another key",
    ),
    "timetz in a key": (
        replaced("order_id: bigint", "order_id: timetz"),
        6, 11, "the key column 'order_id' of 'public.orders' is a timetz", "different zones",
    ),
    "renamed key": (
        replaced("order_id: bigint", "order_id: {type: bigint, renamed_from: id}"),
        8, 46, "the key column 'order_id'", "another `name:`",
    ),
    "renamed and excluded": (
        in_columns("      x: {exclude: true, renamed_from: y}"), 8, 7, "excluded and renamed", "remove",
    ),
    "renamed from no name": (
        in_columns("      x: {type: text, renamed_from: 7}"), 8, 37, "must be a list, not 7", "write",
    ),
    "mask": (in_columns("      x: {type: text, mask: md5}"), 8, 29, "unknown mask", "truncate(n)"),
    "mask of a number": (in_columns("      x: {type: int, mask: hash}"), 8, 7, "integer", "citext"),
    "mask of an array": (in_columns("      x: {type: 'text[]', mask: hash}"), 8, 7, "text[]", "text,"),
    "month of a time": (in_columns("      x: {type: timestamp, mask: month}"), 8, 7, "month", "date;"),
    "token of a number": (in_columns("      x: {type: int, mask: token}"), 8, 7, "integer", "uuid,"),
    "truncate without n": (in_columns("      x: {type: text, mask: truncate}"), 8, 29, "mask", "(n)"),
    "key nulled": (
        replaced("order_id: bigint", "order_id: {type: bigint, mask: null}"), 6, 11, "masked", "`mask`",
    ),
    "excluded and masked": (
        in_columns("      x: {type: text, mask: hash, exclude: true}"), 8, 7, "excluded and", "remove",
    ),
    "exclude as text": (in_columns('      x: {exclude: "yes"}'), 8, 20, "true or false", "`true`"),
    "identity": (in_table("    replica_identity: nothing"), 6, 23, "unknown replica_id", "`full`"),
    "excluded under full": (
        in_table("    replica_identity: full").replace("note: text", "note: {exclude: true}"),
        6, 23, "make every UPDATE", "index NAME",
    ),
    "delivery": (in_table("    delivery: kafka"), 6, 15, "`delivery` cannot be", "`firehose`"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "remedy"), CASES.values(), ids=CASES)
def test_a_mistake_is_reported_where_it_is(text, line, column, message, remedy):
    assert_reported(text, line, column, message, remedy)


def test_every_value_with_a_pattern_has_an_example():
    schema = PipelineFile.model_json_schema()
    models = {"": schema, **schema["$defs"]}
    lacking = {
        (model, key)
        for model, content in models.items()
        for key, value in content.get("properties", {}).items()
        if '"pattern"' in json.dumps(value) and not value.get("examples")
    }
    assert lacking == {("", "name")}  # its remedy is in words


@pytest.mark.parametrize("text", [case[0] for case in CASES.values()], ids=CASES)
def test_every_problem_says_what_to_do(text):
    assert_remedies(text)


def test_the_file_without_mistakes_has_none():
    assert find_problems(parse_document(VALID)) == []


def test_all_problems_come_at_once_and_in_order():
    text = (
        VALID.replace("name: shop", "nme: shop")
        .replace("note: text", "note: txet")
        .replace("[order_id]", "[id]")
        + "  public.Orders:\n"
        + OTHER.replace("id: bigint", "id: bigint, cdc_lsn: text")
        + "stream: {trigger_seconds: '10'}\n"
    )
    found = [(problem.line, problem.message) for problem in find_problems(parse_document(text))]
    assert [line for line, _ in found] == [1, 2, 6, 9, 11, 13, 14]
    expected = ["missing", "'nme'", "'id'", "'txet'", "'orders'", "reserved", "whole number"]
    assert all(part in message for part, (_, message) in zip(expected, found, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "environments: {a: {}, b: {}}\nstream: {mode: x}\n",
        "environments: {a: {tables: {public.orders: {aply: x}}}}\n",
        "environments: {a: {tables: []}}\n",
        "environments: {a: {publish: []}}\n",
        "environments: {a: {connectors: {c: {plugin: p.zip, class: io.X, tables: [public.orders],"
        " settings: {url: 'postgresql://u:secret@h/d'}}}}}\n",
    ],
)
def test_a_mistake_in_an_overlay_is_reported_once(text):
    assert len(find_problems(parse_document(last(text)))) == 1


@pytest.mark.parametrize(
    "columns", ["", " [order_id, note]", " {}"], ids=["nothing", "list", "empty"]
)
def test_missing_columns_are_the_only_problem_of_their_table(columns):
    head = VALID.split("    columns:")[0] + f"    partition_by: [note]\n    columns:{columns}\n"
    assert ["columns" in each.message for each in find_problems(parse_document(head))] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 1000,
        "a: &a [*a]\n",
        "a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 8)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)),
        "a: !!int x\n",
        "a: " + "9" * 5000,
        "a: *b\n",
    ],
)  # fmt: skip
def test_hostile_yaml_is_a_problem_too(text):
    assert find_problems(parse_document(text))
