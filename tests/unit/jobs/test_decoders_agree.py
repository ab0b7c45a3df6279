"""The stream's two decoders and Firehose's on odd and on random events."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.toast_placeholder import unavailable_forms
from cdclake.debezium.types import type_in_plan
from cdclake.jobs.stream.changelog_columns import ABSENT, FINDINGS, MISFITS, REFUSAL
from cdclake.plan import Column, Plan, Table
from cdclake.quality_rule import QualityRule, ValueLimit
from tests.recorded.decoders import (
    Kafka,
    as_stored,
    fast_rows,
    firehose_row,
    is_same,
    slow_rows,
)


def agree(records: Sequence[Kafka], table: Table, plan: Plan) -> int:
    """Assert that all decoders agree; return how many records the fast one left to the slow one."""
    slow = [as_stored(row, table) for row in slow_rows(records, table, plan)]
    fast, left = fast_rows(records, table, plan)
    for offset, (one, other) in enumerate(zip(slow, fast, strict=True)):
        assert is_same(one, other), (records[offset], one, other)
        if one is not None:
            agrees_with_firehose(records[offset], offset, one, table, plan)
    return left


def agrees_with_firehose(
    record: Kafka, offset: int, row: dict[str, Any], table: Table, plan: Plan
) -> None:
    """Firehose sees no key, refuses what it cannot compare with other events, and writes JSON."""
    found = firehose_row(record, offset, table, plan)
    if isinstance(found, dict):
        kept = {name: value for name, value in row.items() if name not in FINDINGS}
        by_key = (refusals.UNREADABLE_KEY, refusals.KEY_MISMATCH, refusals.NULL_KEY)
        is_other = row[REFUSAL] in by_key or row[MISFITS] is not None
        assert is_other or is_same(as_stored(found, table), kept), (found, row)
        return
    of_stream_alone = (refusals.NON_FINITE, refusals.UNREADABLE_VALUE)
    if found is None or found in of_stream_alone or found.startswith("ABSENT_COLUMN"):
        return
    assert row[REFUSAL] is not None, (found, row)


ALL = (
    ("i", "integer"), ("l", "bigint"), ("d", "double precision"), ("r", "real"), ("s", "text"),
    ("b", "boolean"), ("a", "numeric[]"), ("n", "numeric(10,2)"), ("t", "timestamptz"),
    ("y", "bytea"), ("day", "date"), ("at", "timestamp"),
)  # fmt: skip
GOOD = {
    "id": "1", "i": "1", "l": "2", "d": "0.5", "r": "0.25", "s": '"x"', "b": "true",
    "a": "[1,2.50]", "n": '"12.30"', "t": '"2026-01-31T10:00:00.123456Z"', "y": '"QUJD"',
    "day": "20000", "at": "1700000000000000",
}  # fmt: skip


def plan_of(*columns: tuple[str, str], **table: Any) -> tuple[Table, Plan]:
    made = Table(
        schema="public", table="t", name="t", topic="x.public.t", key=("id",),
        columns=tuple(
            Column(source=n, name=n, type=kind) for n, kind in (("id", "bigint"), *columns)
        ),
        **table,
    )  # fmt: skip
    return made, Plan(name="x", source_database="d", lake_database="cdc", tables=(made,))


def record(key: str = '{"id":1}', op: str = "u", extra: str = "", **fields: Any) -> Kafka:
    """An event whose fields are JSON texts; `...` leaves one out."""
    row = {name: text for name, text in {**GOOD, **fields}.items() if text is not ...}
    after = ",".join(f"{json.dumps(name)}:{text}" for name, text in row.items())
    source = '{"lsn":200,"txId":7,"ts_us":1700000000000000,"sequence":"[\\"100\\",\\"200\\"]"}'
    images = (
        f'"before":{{{after}}},"after":null' if op == "d" else f'"before":null,"after":{{{after}}}'
    )
    value = f'{{{images},"source":{source},"op":"{op}","cdc_epoch":"1"'
    return key.encode(), (value + extra + "}").encode("utf-8", "surrogatepass")


UNREADABLE = refusals.UNREADABLE_VALUE
STRICT = [
    ("nothing odd", record(), None, None),
    ("an integer as 1.0", record(i="1.0"), UNREADABLE, ["i"]),
    ("a bigint as 2.0", record(l="2.0"), UNREADABLE, ["l"]),
    ("an integer as 1.5", record(i="1.5"), UNREADABLE, ["i"]),
    ("an integer as 1e3", record(i="1e3"), UNREADABLE, ["i"]),
    ("a bigint as 1e18", record(l="1e18"), UNREADABLE, ["l"]),
    ("an integer too large", record(i="2147483648"), UNREADABLE, None),
    ("a bigint too large", record(l="9223372036854775808"), UNREADABLE, ["l"]),
    ("30 digits", record(l="1" * 30), UNREADABLE, ["l"]),
    ("an integer as text", record(i='"1"'), UNREADABLE, ["i"]),
    ("an integer as true", record(i="true"), UNREADABLE, ["i"]),
    ("an integer -0", record(i="-0"), None, None),
    ("a double as an integer", record(d="5"), None, None),
    ("a double as 2^53+1", record(d="9007199254740993"), None, None),
    ("a double NaN", record(d="NaN"), None, None),
    ("a double Infinity", record(d="-Infinity"), None, None),
    ("a double as the text NaN", record(d='"NaN"'), None, None),
    ("a double 1e400", record(d="1e400"), UNREADABLE, ["d"]),
    ("a double as text", record(d='"0.5"'), UNREADABLE, ["d"]),
    ("a double -0.0", record(d="-0.0"), None, None),
    ("a double -0", record(d="-0"), None, None),
    ("a real that is none", record(r="0.10000000001"), UNREADABLE, ["r"]),
    ("a real", record(r="3.4028235E38"), None, None),
    ("a text as a number", record(s="1.50"), UNREADABLE, ["s"]),
    ("a text as an object", record(s='{"k":1}'), UNREADABLE, ["s"]),
    ("a text as a boolean", record(s="true"), UNREADABLE, ["s"]),
    ("a NUL in a text", record(s='"a\\u0000b"'), None, None),
    ("a control character", record(s='"a\x01b"'), UNREADABLE, None),
    ("a boolean as 0", record(b="0"), UNREADABLE, ["b"]),
    ("a boolean as text", record(b='"true"'), UNREADABLE, ["b"]),
    ("a null", record(s="null"), None, None),
    ("an unknown field", record(zz="1"), None, None),
    ("a field of 200,000 lists", record(zz="[" * 200_000), UNREADABLE, None),
    ("an array of 100 dimensions", record(a="[" * 100 + "]" * 100), None, None),
    ("an array of 101 dimensions", record(a="[1," * 101 + "2" + "]" * 101), UNREADABLE, ["a"]),
    ("an array of 600 dimensions", record(a="[" * 600 + "]" * 600), UNREADABLE, ["a"]),
    ("many lists in one", record(a="[" + ",".join(["[1]"] * 101) + "]"), None, None),
    ("an array of 200,000 dimensions", record(a="[" * 200_000), UNREADABLE, None),
    ("a key of 200,000 lists", record('{"id":' + "[" * 200_000), refusals.UNREADABLE_KEY, None),
    ("a leading zero", record(i="01"), UNREADABLE, None),
    ("garbage at the end", (record()[0], (record()[1] or b"") + b"x"), UNREADABLE, None),
    ("two documents", (record()[0], (record()[1] or b"") * 2), UNREADABLE, None),
    ("a truncated document", (record()[0], (record()[1] or b"")[:-3]), UNREADABLE, None),
    ("a comma at the end", record(extra=","), UNREADABLE, None),
    ("a byte order mark", (record()[0], b"\xef\xbb\xbf" + (record()[1] or b"")), UNREADABLE, None),
    ("an array as text", record(a='"[1,2]"'), None, None),
    ("an array with spaces", record(a="[1, 2.50]"), None, None),
    ("an array with -0", record(a="[-0,1]"), None, None),
    ("an array of escapes", record(a='["\\u00e9","\\n"]'), None, None),
    ("an unbalanced array", record(a="[1,2}"), UNREADABLE, None),
    ("invalid UTF-8", (record()[0], (record()[1] or b"").replace(b'"x"', b'"\xff\xfe"')),
     UNREADABLE, None),
    ("an emoji", record(s='"😀"'), None, None),
    ("nothing", (b'{"id":1}', b""), UNREADABLE, None),
    ("the document null", (b'{"id":1}', b"null"), UNREADABLE, None),
    ("a list", (b'{"id":1}', b"[]"), UNREADABLE, None),
    ("an unknown operation", record(op="x"), refusals.UNKNOWN_OPERATION, None),
    ("no key", (None, record()[1]), refusals.UNREADABLE_KEY, None),
    ("a key of text", record('{"id":"1"}'), refusals.UNREADABLE_KEY, None),
    ("a key without its column", record("{}"), refusals.NULL_KEY, None),
    ("another key", record('{"id":2}'), refusals.KEY_MISMATCH, None),
    ("a number of three decimals", record(n='"1.005"'), "NOT_REPRESENTABLE", None),
    ("a number with zeros", record(n='"0001.5000"'), None, None),
    ("the 29th of February", record(t='"2024-02-29T00:00:00Z"'), None, None),
    ("no 29th of February", record(t='"2023-02-29T00:00:00Z"'), "NOT_REPRESENTABLE", None),
    ("the 31st of April", record(t='"2023-04-31T00:00:00Z"'), "NOT_REPRESENTABLE", None),
    ("infinity", record(t='"infinity"'), "NOT_REPRESENTABLE", None),
    ("no base64", record(y='"QUJ"'), "NOT_REPRESENTABLE", None),
    ("base64 that is not ASCII", record(y='"\\u0080"'), "NOT_REPRESENTABLE", None),
    ("a day too far", record(day="2147483647"), "NOT_REPRESENTABLE", None),
    ("an oversized marker", record(extra=',"cdc_oversized":{"reason":"too large"}'),
     "too large", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "refusal", "misfits"), [case[1:] for case in STRICT], ids=[case[0] for case in STRICT]
)
def test_a_field_that_is_not_exactly_as_declared(
    sent: Kafka, refusal: str | None, misfits: list[str] | None
) -> None:
    table, plan = plan_of(*ALL)
    agree([sent], table, plan)
    agree([record(), sent, record(op="c")], table, plan)  # also within a block
    [row] = slow_rows([sent], table, plan)
    assert row is not None
    assert (row[REFUSAL] is None) == (refusal is None), row[REFUSAL]
    assert row[REFUSAL] is None or row[REFUSAL].startswith(str(refusal).split(":")[0])
    assert row[MISFITS] == misfits


@pytest.mark.parametrize("kind", ["double precision", "real"])
@pytest.mark.parametrize(("in_key", "refused"), [('"NaN"', False), ("0.5", True)])
def test_a_key_that_is_no_number_equals_itself(kind: str, in_key: str, refused: bool) -> None:
    table, plan = plan_of(("d", kind))
    table = replace(table, key=("id", "d"))
    plan = replace(plan, tables=(table,))
    sent = record(f'{{"id":1,"d":{in_key}}}', d='"NaN"')
    agree([record('{"id":1,"d":0.5}'), sent], table, plan)
    [row] = slow_rows([sent], table, plan)
    assert row is not None and row[REFUSAL] == (refusals.KEY_MISMATCH if refused else None)


@pytest.mark.parametrize("op", ["u", "d"])
def test_key_columns_with_the_names_of_a_wrapper(op: str) -> None:
    table, plan = plan_of(("schema", "text"), ("payload", "text"), ("d", "double precision"))
    table = replace(table, key=("schema", "payload"))
    plan = replace(plan, tables=(table,))
    key = '{"schema":"a","payload":"b"}'
    sent = record(key, op, schema='"a"', payload='"b"', d='"NaN"')
    agree([sent], table, plan)
    [row] = slow_rows([sent], table, plan)
    assert row is not None and row[REFUSAL] is None
    assert (row["schema"], row["payload"]) == ("a", "b")


def test_a_missing_field_is_reported_and_not_refused() -> None:
    table, plan = plan_of(*ALL)
    sent = [record(s=...), record(), record(a=..., s=...)]
    assert agree(sent, table, plan) == 2
    first, second, third = slow_rows(sent, table, plan)
    assert first and second and third
    assert (first[ABSENT], first[REFUSAL], first["s"]) == (["s"], None, None)
    assert (second[ABSENT], third[ABSENT]) == (None, ["s", "a"])


def test_names_that_no_struct_can_have_are_decoded_slowly() -> None:
    table, plan = plan_of(('it"s', "text"), ("a.b", "text"), ("größe", "text"))
    sent = [record(**{'it"s': '"x"', "a.b": "null", "größe": '"y"'}), record()]
    assert agree(sent, table, plan) == 2
    table, plan = plan_of(("a.b", "text"), ("größe", "text"))
    assert agree([record(**{"a.b": "null", "größe": '"y"'})], table, plan) == 0


def test_a_tombstone_has_no_row() -> None:
    table, plan = plan_of(*ALL)
    sent: list[Kafka] = [record(), (b'{"id":1}', None), record()]
    assert agree(sent, table, plan) == 0
    assert slow_rows(sent, table, plan)[1] is None


@pytest.mark.parametrize("op", ["c", "u"])
@pytest.mark.parametrize("identity", ["default", "full"])
def test_an_unsent_value_is_listed_under_every_identity(identity: str, op: str) -> None:
    """Under full it is in events from before the table had that identity."""
    table, plan = plan_of(("s", "text"), ("y", "bytea"), replica_identity=identity)
    sent = [record(op=op, s=json.dumps(plan.placeholder)), record()]
    assert agree(sent, table, plan) == 0
    row = slow_rows(sent, table, plan)[0]
    assert row is not None
    assert (row["s"], row[naming.UNAVAILABLE], row[REFUSAL]) == (None, ["s"], None)
    found = firehose_row(sent[0], 0, table, plan)
    assert isinstance(found, dict) and found[naming.UNAVAILABLE] == ["s"]


@pytest.mark.parametrize("deletes", ["hard", "soft"])
@pytest.mark.parametrize("identity", ["default", "full"])
def test_deletes_take_the_key_of_the_record(identity: str, deletes: str) -> None:
    table, plan = plan_of(*ALL, replica_identity=identity, deletes=deletes)
    _, value = record(op="d", n='"1.005"')
    sent: list[Kafka] = [(b'{"id":1}', value), (b'{"id":null}', value), (None, value)]
    agree(sent, table, plan)
    rows = slow_rows(sent, table, plan)
    assert rows[0] is not None and rows[1] is not None
    assert rows[0]["id"] == 1
    is_checked = identity == "full" and deletes == "soft"
    assert (rows[0][REFUSAL] is not None) == is_checked
    assert rows[1][REFUSAL] == refusals.NULL_KEY


def test_a_renamed_column_is_read_under_its_earlier_names() -> None:
    renamed = Column(source="mail", name="e", type="text", renamed_from=("email", "e_mail"))
    table, plan = plan_of()
    columns = (*table.columns, renamed)
    table = Table(**{**{f: getattr(table, f) for f in table.__slots__}, "columns": columns})
    sent = [
        record(mail='"a"'), record(e_mail='"b"', email='"c"'), record(email="null"), record(),
        record(mail="null", email='"old"'),
    ]  # fmt: skip
    plan = Plan(name="x", source_database="d", lake_database="cdc", tables=(table,))
    agree(sent, table, plan)
    rows = slow_rows(sent, table, plan)
    assert [row["e"] for row in rows if row] == ["a", "b", None, None, None]
    assert [row[naming.UNAVAILABLE] for row in rows if row] == [None, None, None, ["e"], None]
    assert [row[ABSENT] for row in rows if row] == [None, ["mail"], ["mail"], ["mail"], None]


UNSENT = [
    json.dumps(form)
    for kind in ("text", "bytea", "text[]")
    for form in unavailable_forms(type_in_plan(kind), naming.unavailable_placeholder("x"))
]
JSON_TEXTS = st.one_of(
    st.just("null"),
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(json.dumps),
    st.booleans().map(json.dumps),
    st.text().map(json.dumps),
    st.text().map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(lambda d: json.dumps(str(d))),
    st.datetimes().map(lambda at: json.dumps(at.isoformat() + "Z")),
    st.binary().map(lambda data: json.dumps(data.hex())),
    st.lists(st.one_of(st.integers(), st.text(), st.none(), st.floats())).map(json.dumps),
    st.sampled_from(UNSENT),
    st.sampled_from(["-0", "-0.0", "1.0E5", "[]", "{}", '"NaN"', "1e400", '{"x":1.0,"y":2.0}']),
)
NOT_NULL = ValueLimit(column="c0", test="not_null")
KINDS = [*(kind for _, kind in ALL), "point", "vector(2)", "bit(3)", "uuid", "jsonb", "text[]"]


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_random_values_have_one_row_whoever_decodes_them(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    names = [f"c{index}" for index in range(len(kinds))]
    rules = [(), (QualityRule(name="r", kind="rows", limit=NOT_NULL),)]
    table, plan = plan_of(
        *zip(names, kinds, strict=True),
        replica_identity=data.draw(st.sampled_from(["default", "full"])),
        checks=data.draw(st.sampled_from(rules)),
    )
    values = st.fixed_dictionaries({}, optional=dict.fromkeys(names, JSON_TEXTS))
    sent = []
    for fields in data.draw(st.lists(values, min_size=1, max_size=6)):
        missing = dict.fromkeys(GOOD.keys() - {"id"}, ...)
        op = data.draw(st.sampled_from("curdt"))
        sent.append(record(op=op, **{**missing, **fields}))
    agree(sent, table, plan)
