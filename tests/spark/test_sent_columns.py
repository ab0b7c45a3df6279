"""Values that a load reads in binary: proved ones are those of the SQL expressions and of Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.bulk_load.load_task import SentRows
from cdclake.jobs.bulk_load.sent_column import SentColumn
from cdclake.plan import Column, Table
from cdclake.postgres.bulk_read import sent_rows
from cdclake.quality_rule import QualityRule, ValueLimit
from tests.recorded.recording import Recording
from tests.spark.bulk import BulkSource, statements
from tests.spark.events import plan_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# One column of each type, and texts of its values; NULL is added to each.
EXTREMES: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    "smallint": ("-32768", "32767"),
    "integer": ("-2147483648", "2147483647", "0"),
    "bigint": ("-9223372036854775808", "9223372036854775807"),
    "oid": ("0", "4294967295"),
    "real": ("-0", "NaN", "Infinity", "-Infinity", "3.4028235e38", "1e-45", "0.1"),
    "double precision": ("-0", "NaN", "Infinity", "-Infinity", "1e-320", "9007199254740993"),
    "numeric": ("NaN", "Infinity", "-Infinity", "1e-30", "-0.00", "1" + "0" * 200, "1.500"),
    "numeric(12,2)": ("NaN", "-9999999999.99", "9999999999.99", "0", "-0.01"),
    "numeric(38,0)": ("9" * 38, "-" + "9" * 38),
    "numeric(38,38)": ("0." + "9" * 38, "0"),
    "numeric(50,3)": ("9" * 47 + ".999",),
    "money": ("-92233720368547758.08", "92233720368547758.07", "0"),
    "date": ("infinity", "-infinity", "4713-01-01 BC", "0001-01-01", "5874897-12-31", "1582-10-10"),
    "timestamp": (
        "infinity", "-infinity", "4713-01-01 00:00:00 BC", "0001-12-31 23:59:59.999999 BC",
        "294246-01-01 00:00:00.000001", "1969-12-31 23:59:59.999999",
    ),
    "timestamptz": (
        "infinity", "-infinity", "4713-01-01 00:00:00+00 BC", "0001-12-31 23:59:59.999999+00 BC",
        "0001-01-01 00:00:00+00", "0999-02-28 12:00:00+00", "1582-10-10 00:00:00+00",
        "1900-02-28 23:59:59+00", "1969-12-31 23:59:59.999999+00", "2000-02-29 00:00:00.000001+14",
        "9999-12-31 23:59:59.999999+00", "10000-01-01 00:00:00+00",
        "294276-12-31 23:59:59.999999+00",
    ),
    "timestamptz(0)": ("2024-01-01 00:00:00+00", "1969-12-31 23:59:59+00"),
    "timestamptz(3)": ("2024-01-01 00:00:00.12+02", "1969-12-31 23:59:59.999+00"),
    "time": ("00:00:00", "24:00:00", "23:59:59.999999", "00:00:00.000001"),
    "timetz": ("24:00:00+00", "00:00:00-15:59", "23:59:59.999999+15:59"),
    "interval": ("-178000000 years", "178000000 years", "-1.5 days 00:00:00.000001", "0"),
    "bytea": ("\\x", "\\x00", "\\xff00fe", "\\x" + "ab" * 100),
    "uuid": ("00000000-0000-0000-0000-000000000000", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"),
    "text": ("", "\t\"q\" \\ é 😀\u2028", "a" * 5000),
    "varchar(20)": ("", " x "),
    "char(5)": ("", "ab"),
    "json": ('{"a": 1.0,  "a":2}', "null"),
    "jsonb": ('{"n": 1e400}', "[]"),
    "xml": ("<a>é</a>",),
    "inet": ("10.0.0.1/8", "::1"),
    "cidr": ("10.1.0.0/16",),
    "macaddr": ("08:00:2b:01:02:03",),
    "bit(1)": ("0", "1"),
    "bit(10)": ("0000000101", "1111111111"),
    "varbit(40)": ("", "0011", "1" * 40),
    "point": ("(1.5,-2)", "(NaN,0)"),
    "tstzrange": ("[2024-01-01 00:00:00+02,)", "empty"),
    "tsvector": ("a fat cat",),
    "text[]": (
        '{}', '{a,NULL,"b c"}', '{"q\\"\\\\"}', '{é,ü}', '{😀}', '{" "}', "{\u2028}", "{{a},{b}}",
        '{null,"null",true,""}',
    ),
    "integer[]": ("{}", "{1,NULL,-3,0}", "{{1,2},{3,4}}", "[5:6]={7,8}"),
    "bigint[]": ("{9223372036854775807,-9223372036854775808,999999999999999999}",),
    "boolean[]": ("{t,NULL,f}",),
    "numeric[]": ("{1.50,NULL,NaN,1e-10}",),
    "double precision[]": ("{1,0.1,NaN,-Infinity,1e300,NULL}", "{-0}"),
    "real[]": ("{0.1,1e10,NULL}",),
    "date[]": ("{2024-01-01,NULL,infinity}", "{0044-03-15 BC}"),
    "timestamp[]": ("{2024-01-01 01:02:03.4,NULL,infinity}",),
    "timestamptz[]": ("{2024-01-01 01:02:03.4+02,NULL,infinity}", "{0044-03-15 00:00:00+00 BC}"),
    "bytea[]": ('{"\\\\x00ff",NULL}',),
    "jsonb[]": ('{"{\\"a\\": 1}",NULL}',),
}  # fmt: skip
# Types with values that are left to Spark, of those above.
LEFT_TO_SPARK = {
    "numeric", "numeric(12,2)", "numeric(38,38)", "date", "timestamp", "timestamptz", "point",
    "text[]", "integer[]", "bigint[]", "double precision[]", "real[]", "jsonb[]",
    "timestamp[]",
}  # fmt: skip


def extremes() -> tuple[Table, list[str]]:
    """A table with a column of each type, and the statements that fill it."""
    kinds = list(EXTREMES)
    columns = tuple(Column(source=f"c{i}", name=f"c{i}", type=k) for i, k in enumerate(kinds))
    key = Column(source="id", name="id", type="bigint")
    [table] = plan_of(columns=(key, *columns)).tables
    table = replace(table, table="extremes")
    declared = ", ".join(f"{c.source} {c.type}" for c in columns)
    statements = [f"CREATE TABLE extremes (id bigint PRIMARY KEY, {declared})"]
    for row in range(max(map(len, EXTREMES.values())) + 1):
        texts = (EXTREMES[kind][row : row + 1] for kind in kinds)
        values = ", ".join("'" + t[0].replace("'", "''") + "'" if t else "NULL" for t in texts)
        statements.append(f"INSERT INTO extremes VALUES ({row}, {values})")
    return table, statements


def differences(source: BulkSource, table: Table) -> tuple[list[Any], set[str]]:
    """Values of the first table that are proved and differ, and types with an unproved value."""
    names = [SPARK.name(column.name) for column in table.columns]
    plan = plan_of()
    plan = replace(plan, tables=(table,))
    with source.snapshot([table]) as snapshot:
        with snapshot.reader.batches(sent_rows(table, "true")) as batches:
            sent = pa.Table.from_batches(list(batches))
        events = source.exact_events(plan, snapshot).orderBy("cdc_offset")
        found = events.selectExpr(*names, *map(state_value, table.columns)).collect()
    assert len(found) == sent.num_rows
    differ, unproved = [], set()
    for at, column in enumerate(table.columns):
        read = SentColumn(column, table, has_state=True).read(sent.column(at).combine_chunks())
        proved = [True] * len(found) if read.proved is None else read.proved.to_pylist()
        if not all(proved):
            unproved.add(column.type)
        for row in (row for row, is_proved in enumerate(proved) if is_proved):
            expected = [found[row][at], found[row][len(names) + at]]
            actual = [comparable(read.log)[row], comparable(read.state)[row]]
            if repr(actual) != repr(
                [bytes(e) if isinstance(e, bytearray) else e for e in expected]
            ):
                differ.append((column.name, actual, expected))
    return differ, unproved


def state_value(column: Column) -> str:
    """SQL of the column's value in the state; of days and times the number, as in `comparable`."""
    name, kind = SPARK.name(column.name), column.column_type
    value = to_state(name, kind, SPARK)
    if kind.state == "date":
        return f"unix_date({value})"
    return f"unix_micros(CAST({value} AS timestamp))" if "timestamp" in kind.state else value


def comparable(values: pa.Array) -> list[Any]:
    """The values; of days and times only the numbers, since Python's have fewer years."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    found: list[Any] = values.to_pylist()
    return found


def test_proved_extremes_are_those_of_spark(source: BulkSource) -> None:
    table, filling = extremes()
    source.run(*filling)
    differ, unproved = differences(source, table)
    assert differ == []
    assert unproved == LEFT_TO_SPARK


def test_proved_values_of_every_recorded_type_are_those_of_spark(source: BulkSource) -> None:
    source.run(*statements("types"))
    table = Recording.load("types").plan.table("public.typed")
    columns = tuple(c for c in table.columns if c.type != "hstore")  # refused with `bulk`
    differ, unproved = differences(source, replace(table, columns=columns))
    assert differ == []
    assert "text" not in unproved


def test_what_may_be_refused_is_not_proved() -> None:
    limit = ValueLimit(column="v", test="not_null")
    columns = tuple(
        Column(source=n, name=n, type=t) for n, t in (("id", "bigint"), ("v", "integer"))
    )
    rule = QualityRule(name="not_null(v)", kind="rows", limit=limit)
    [table] = plan_of(columns=columns, checks=(rule,)).tables
    rows = {"s0": pa.array([1, None, 3]), "s1": pa.array([1, 2, None], pa.int32())}
    unproved = SentRows(table, has_state=False).unproved(pa.RecordBatch.from_pydict(rows))
    assert unproved.to_pylist() == [False, True, True]
