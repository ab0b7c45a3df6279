"""The decoder on events that a real Debezium wrote, against PostgreSQL's own word of each row."""

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pytest

from cdclake import naming
from cdclake.config.resolve import load_plan
from cdclake.debezium.field_values import holds
from cdclake.debezium.refusals import NON_FINITE, not_representable
from cdclake.debezium.types import parse_type
from cdclake.iceberg.conversions import is_representable, to_state
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.schemas import changes_schema
from cdclake.jobs.stream.changelog_columns import ABSENT, REFUSAL
from cdclake.jobs.stream.event_decoder import EventDecoder
from cdclake.plan import Column, Table
from tests.recorded.expected import Expected, expected_in_order, in_key_order, is_unheld, value_of
from tests.recorded.firehose import INGESTED_AT, rows_of
from tests.recorded.limits import LIMITS
from tests.recorded.recording import EPOCH, FOLDER, Recording
from tests.recorded.values import of_event, of_postgres
from tests.spark.events import RECORD

pytestmark = pytest.mark.spark

TABLES = [
    ("changes", "plain"), ("changes", "whole"), ("changes", "by_index"), ("changes", "pair"),
    ("changes", "parent"), ("changes", "child"), ("changes", "parts"),
    ("schema", "labelled"), ("snapshots", "read_again"), ("snapshots", "flowing"),
    ("toast", "toasted"), ("toast", "domains"), ("toast", "whole"), ("toast", "long_key"),
    ("toast", "masked"),
    ("types", "typed"), ("types", "keyed"), ("types", "refused"), ("types", "limits"),
]  # fmt: skip

MICROS = f"unix_micros({naming.COMMITTED_AT}) AS committed_micros"

# What makes a value of `<t>` one that Python can hold, in any year.
STATE_FORMS = {
    "date": "unix_date({})",
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "unix_micros(CAST({} AS TIMESTAMP))",
    "binary": "base64({})",
}


def records_of(recording: Recording, table: Table) -> list[tuple[Any, ...]]:
    return [
        (r.topic, r.partition, r.offset, r.key, r.value, list(r.headers))
        for r in recording.of_topic(table.topic)
    ]


_DECODED: dict[tuple[str, Table], list[Any]] = {}


def decoded(spark, recording: Recording, table: Table) -> list[Any]:
    """The rows of the table's events by offset: the log's columns, and `<t>`'s as `state_...`."""
    key = (recording.name, table)
    if key not in _DECODED:
        _DECODED[key] = _decoded(spark, recording, table)
    return _DECODED[key]


def _decoded(spark, recording: Recording, table: Table) -> list[Any]:
    events = spark.createDataFrame(records_of(recording, table), RECORD)
    rows = EventDecoder(table, recording.plan).decode(events)
    states = [f"{state_form(c)} AS {SPARK.name(f'state_{c.name}')}" for c in table.columns]
    return sorted(
        rows.selectExpr("*", MICROS, *states).collect(), key=lambda row: row[naming.OFFSET]
    )


def state_form(column: Column) -> str:
    kind = column.column_type.state
    form = STATE_FORMS.get(kind, "CAST({} AS STRING)" if kind.startswith("decimal") else "{}")
    return form.format(to_state(SPARK.name(column.name), column.column_type, SPARK))


def state_value(column: Column, value: Any) -> Any:
    """The value that `<t>` holds, in the form that `values` compares."""
    kind = column.column_type.state
    if value is None or column.mask is not None:
        return value
    if kind in ("date", "timestamp", "timestamp_ntz"):
        return value
    by_text = column.column_type.base == "time" and not column.column_type.array
    return (of_postgres if by_text else of_event)(column.column_type, value)


@pytest.mark.parametrize(("name", "lake_name"), TABLES, ids=lambda part: part)
def test_the_log_says_what_postgresql_said(spark, name: str, lake_name: str) -> None:
    recording = Recording.load(name)
    table = recording.plan.table(lake_name)
    said = recording.said_of(table.source)
    expected = list(expected_in_order(table, said))
    rows = decoded(spark, recording, table)
    assert [row[naming.POSITION] for row in rows] == sorted(row[naming.POSITION] for row in rows)
    keys = [column.name for column in table.key_columns]
    rows = list(
        in_key_order(rows, itemgetter(naming.OP), lambda row: [str(row[key]) for key in keys])
    )
    assert [row[naming.OP] for row in rows] == [event.op for event in expected]
    assert {row[naming.EPOCH] for row in rows} == {EPOCH}
    for row, event in zip(rows, expected, strict=True):
        assert problems(table, row, event) == [], (event.op, event.key)


def problems(table: Table, row: Any, event: Expected) -> list[Any]:
    """Every column whose value is not the expected one, and wrong words on the whole event."""
    found: list[Any] = []
    unheld = [c for c in table.columns if is_unheld(c, event.row.get(c.source))]
    said, refused = row[REFUSAL], not_representable(unheld[0], table) if unheld else None
    if said != refused:
        found.append(("refusal", said, refused))
    if set(row[naming.UNAVAILABLE] or ()) != event.unsent:
        found.append(("unsent", row[naming.UNAVAILABLE], event.unsent))
    for column in table.columns:
        found += column_problems(table, column, row, event)
    return found


def column_problems(table: Table, column: Column, row: Any, event: Expected) -> Iterator[Any]:
    logged, state = row[column.name], row[f"state_{column.name}"]
    text = event.row.get(column.source)
    limits = LIMITS.get(table.table, {}).get(column.source, {})
    key = "; ".join(str(text) for text in event.key.values())
    if key in limits:
        pattern = limits[key]
        changed = logged is None if pattern is None else re.fullmatch(pattern, str(logged))
        if not changed:
            yield (column.source, logged, pattern)
        return
    if is_unheld(column, text):
        if logged is None or state is not None:
            yield (column.source, logged, state, text)
        return
    wanted = value_of(column, text)
    masked = column.mask is not None
    came = logged if logged is None or masked else of_event(column.column_type, logged)
    if came != wanted:
        yield (column.source, logged, text)
    if state_value(column, state) != came:
        yield (column.source, "in the state", state, text)


# Under each file what becomes of the table that changes its shape, by id and op: the values of the
# state, or how it was refused. A field that is not in an event any more is NULL, as things stand.
SHIFTING: dict[str, dict[str, Any]] = {
    "schema": {
        "1r": (1, "one", "1.50", 19723), "2r": (2, None, None, 19724),
        "3c": (3, "three", "3.50", 19725), "4c": (4, "four", "4.50", 19726),
        "5c": (None, None, None, 19727), "1u": (10, "one", "1.50", 19723),
        "6c": (6, "six", "6.50", None), "7c": (7, "seven", "7.50", None),
        "8c": "UNREADABLE_VALUE", "9c": (9, None, "9.50", None), "10c": "NOT_REPRESENTABLE",
        "11c": (11, None, "11.50", None), "12c": (12, None, "12.50", None),
        "2d": (None, None, None, None), "13c": "UNREADABLE_VALUE", "4u": (4, None, "4.50", None),
        "12d": (None, None, None, None), "120c": (12, None, "12.50", None),
    },
    "schema_after": {
        "1r": (1, None, "1.5000", None), "2r": (2, None, None, None),
        "3c": (3, None, "3.5000", None), "4c": (4, None, "4.5000", None),
        "5c": (None, None, None, None), "1u": (10, None, "1.5000", None),
        "6c": (6, None, "6.5000", None), "7c": (7, None, "7.5000", None),
        "8c": (3000000000, None, None, None), "9c": (9, None, "9.5000", None),
        "10c": (10, None, "9.1234", None), "11c": (11, None, "11.5000", None),
        "12c": (12, None, "12.5000", None), "2d": (None, None, None, None),
        "13c": (3000000000, "thirteen", "13.1234", 13), "4u": (4, "four", "4.5000", None),
        "12d": (None, None, None, None), "120c": (12, "twelve", "12.5000", None),
    },
}  # fmt: skip


@pytest.mark.parametrize("file", SHIFTING)
def test_a_table_that_changes_its_shape_under_either_file(spark, file: str) -> None:
    recording = replace(Recording.load("schema"), plan=load_plan(FOLDER / f"{file}.yaml"))
    table = recording.plan.table("public.shifting")
    found: list[Any] = []
    for row in decoded(spark, recording, table):
        values = tuple(row[f"state_{column.name}"] for column in table.value_columns)
        found.append(row[REFUSAL].partition(":")[0] if row[REFUSAL] else values)
    assert found == list(SHIFTING[file].values())


@pytest.mark.parametrize(
    ("column", "reason", "unsent"),
    [("c_text", None, ["c_text"]), ("c_smallints", "UNSENT_VALUE", None)],
)
def test_an_unsent_value_under_identity_full_is_no_null(
    spark, column: str, reason: str | None, unsent: list[str] | None
) -> None:
    """It is listed if it has a placeholder, and refused without one."""
    recording = Recording.load("toast")
    table = recording.plan.table("public.unprotected")
    kept = tuple(c for c in table.columns if c.name in ("id", "v", column))
    rows = decoded(spark, recording, replace(table, columns=kept))
    reasons = [row[REFUSAL] and row[REFUSAL].partition(":")[0] for row in rows]
    assert reasons == [None, None, reason]  # the last after the identity was changed
    assert rows[-1]["cdc_unavailable"] == unsent


@pytest.mark.parametrize(
    ("name", "lake_name", "file"),
    [
        *((name, lake_name, name) for name, lake_name in TABLES),
        *(("schema", "public.shifting", file) for file in SHIFTING),
        ("toast", "public.unprotected", "toast"),
    ],
)
def test_firehose_writes_the_same_rows(spark, name: str, lake_name: str, file: str) -> None:
    recording = replace(Recording.load(name), plan=load_plan(FOLDER / f"{file}.yaml"))
    table = recording.plan.table(lake_name)
    ours = rows_of(recording.of_topic(table.topic), table, recording.plan)
    columns = dict(changes_schema(table, recording.plan).columns)
    for row in decoded(spark, recording, table):
        theirs = {column: logged(row, column, kind) for column, kind in columns.items()}
        told = ours.pop(row[naming.OFFSET])
        if isinstance(told, dict):
            assert row[REFUSAL] is None
            assert {c: in_log(told[c], kind) for c, kind in columns.items()} == theirs
            assert told.keys() == columns.keys()
        elif told == NON_FINITE:
            assert any(type(v) is float and not math.isfinite(v) for v in theirs.values())
        elif told.startswith("ABSENT_COLUMN"):  # before which the stream stops, or knows better
            assert row[ABSENT] is not None
        else:
            assert told == row[REFUSAL]
    assert ours == {}


def logged(row: Any, column: str, kind: str) -> Any:
    """What the log holds, times as microseconds."""
    if column == naming.INGESTED_AT:
        return INGESTED_AT  # set when the batch is appended
    return row["committed_micros"] if column == naming.COMMITTED_AT else in_log(row[column], kind)


def in_log(value: Any, kind: str) -> Any:
    """The value as a column of this type holds it."""
    is_real = kind == "float" and value is not None
    return struct.unpack("f", struct.pack("f", value))[0] if is_real else value


HELD: dict[str, list[Any]] = {
    "numeric(5,2)": [
        "0", "-0.00", "999.99", "1000", "1.230", "1.234", "000123.4", "1.", "-.5", "NAN", "1e2", "",
    ],
    "numeric(3,3)": ["0.123", "1.000", "0.1230", "0.1234", "-0.999"],
    "numeric(38,0)": ["9" * 38, "9" * 39, "-" + "9" * 38],
    "date": [-2440589, -2440588, 0, 2145042905, 2145042906],
    "timestamp": [
        -210866803200000001, -210866803200000000, 0, 9223372000000000000, 9223372000000000001,
    ],
    "timestamptz": [
        "2024-02-29T23:59:59.123456Z", "2023-02-29T00:00:00Z", "0001-01-01T00:00:00Z",
        "-4712-01-01T00:00:00Z", "+10000-12-31T23:59:59Z", "+294246-12-31T00:00:00Z",
        "+294247-01-01T00:00:00Z", "+294276-12-31T23:59:59.999999Z", "infinity", "-infinity",
        "2024-01-01T24:00:00Z", "2024-13-01T00:00:00Z", "0000-02-29T00:00:00Z",
    ],
    "bytea": ["", "AP8=", "AP8", "café", "ABCD="],
}  # fmt: skip


def test_firehose_holds_the_same_values_to_be_representable(spark):
    for spelling, values in HELD.items():
        kind = parse_type(spelling)
        assert kind is not None
        ours = holds(kind)
        assert ours is not None
        frame = spark.createDataFrame([(value,) for value in values], f"v {kind.log}")
        held = frame.selectExpr("v", f"{is_representable('v', kind, SPARK)} AS held").collect()
        assert {row["v"]: ours(row["v"]) for row in held} == {r["v"]: r["held"] for r in held}
