"""The block decoder, the decoder it answers to, and Firehose's, on recorded and written events.

What Firehose's decoder does otherwise on purpose is in `firehose_differs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from cdclake import naming
from cdclake.config.resolve import load_plan
from cdclake.debezium.refusals import NON_FINITE, UNREADABLE_VALUE
from cdclake.plan import Column, Plan, Table
from tests.model.scenarios import Case, cases
from tests.model.shapes import plan_with, shaped_table
from tests.recorded.decoded import Outcome, Outcomes, Sent, alone, by_block, by_firehose
from tests.recorded.recording import FOLDER, Recording, names

# The connector's rows of these tables have escapes, infinities, BC years and the like on purpose.
ODD_TABLES = {"typed", "keyed", "refused", "limits", "shifting"}


def agreed(records: list[Sent], table: Table, plan: Plan) -> tuple[Outcomes, int]:
    """What both decoders of the stream make of the records; and how many went the slow way."""
    expected = alone(records, table, plan)
    found, slow = by_block(records, table, plan)
    assert found == expected
    return found, slow


def firehose_differs(told: dict[str, str] | str | None, streamed: Outcome) -> bool:
    """Whether Firehose's answer is another one without need.

    It refuses a missing field, and what JSON cannot hold. It has no key: the stream refuses events
    for it, and takes a delete's key from it. Where both refuse, each names the first reason it met.
    """
    if told == NON_FINITE:
        return not any(value in ("nan", "inf", "-inf") for value in streamed.row.values())
    if isinstance(told, str):
        return streamed.refusal is None and not streamed.absent
    by_key = ("UNREADABLE_KEY", "NULL_KEY", "KEY_MISMATCH")
    if streamed.refusal is not None:
        return not streamed.refusal.startswith(by_key)
    return told != streamed.row


def recorded() -> Iterator[Any]:
    for name in names():
        recording = Recording.load(name)
        later = [load_plan(FOLDER / "schema_after.yaml")] if name == "schema" else []
        for plan in (recording.plan, *later):
            for table in plan.tables:
                records = [
                    Sent(r.offset, r.key, r.value, r.partition)
                    for r in recording.of_topic(table.topic)
                ]
                if records:
                    yield pytest.param(records, table, plan, id=f"{name}-{table.name}")


@pytest.mark.parametrize(("records", "table", "plan"), [*recorded()])
def test_recorded_events_decode_alike(records: list[Sent], table: Table, plan: Plan) -> None:
    found, slow = agreed(records, table, plan)
    for record in records:
        told = by_firehose(record, table, plan)
        streamed = found.get((record.partition, record.offset))
        assert (told is None) == (streamed is None)
        if streamed is not None:
            assert not firehose_differs(told, streamed), record
    truncates = sum(o.row[naming.OP] == "'t'" for o in found.values())
    if table.name not in ODD_TABLES and table.table != "unprotected":
        assert slow == truncates
    for identity in ("default", "full"):
        other = replace(table, replica_identity=identity, deletes="soft")
        agreed(records, other, plan)
        agreed(records, other, replace(plan, not_representable="null"))


def test_most_recorded_events_are_proven() -> None:
    slow = events = 0
    for param in recorded():
        found, alone_ = agreed(*param.values)
        clean = [o for o in found.values() if not (o.refusal or o.absent or o.misfits)]
        events, slow = events + len(clean), slow + alone_ - (len(found) - len(clean))
    assert events > 250
    assert slow < events / 10


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_the_catalogues_events_decode_alike(case: Case) -> None:
    table = shaped_table(case.shape)
    records = [
        Sent(1000 * number + (r.offset or 0), r.key, r.value, r.partition)
        for number, batch in enumerate(case.records())
        for r in batch
    ]
    found, _ = agreed(records, table, plan_with(table))
    refused = [o.refusal.split(":")[0] for o in found.values() if o.refusal]
    assert set(refused) == set(case.refused)


# --- strictness ----------------------------------------------------------------------------------

_KINDS = {
    "id": "bigint", "i": "integer", "l": "bigint", "d": "double precision", "r": "real",
    "s": "text", "b": "boolean", "a": "integer[]", "e": "timestamptz",
}  # fmt: skip
STRICT = Table(
    schema="public", table="t", name="t", topic="x.public.t", key=("id",),
    columns=tuple(Column(source=name, name=name, type=kind) for name, kind in _KINDS.items()),
)  # fmt: skip
FIELDS = {
    "id": "1", "i": "1", "l": "2", "d": "0.5", "r": "0.1", "s": '"x"', "b": "true", "a": "[1,2]",
    "e": '"2026-01-02T03:04:05.5Z"',
}  # fmt: skip
SOURCE = {"lsn": "5", "txId": "7", "ts_us": "1700000000000000", "sequence": '"[\\"4\\",\\"5\\"]"'}
REFUSED = object()  # as unreadable, for its form
Change = Mapping[str, str | None]

# Name of the case, its field, the field's JSON (None: left out), and the value in the changelog.
FORMS: list[tuple[str, str, str | None, Any]] = [
    ("an int as 1.0", "i", "1.0", REFUSED),
    ("a bigint as 2.0", "l", "2.0", REFUSED),
    ("an int as 1.5", "i", "1.5", REFUSED),
    ("an int as 1e3", "i", "1e3", REFUSED),
    ("a bigint as 1e18", "l", "1e18", REFUSED),
    ("an int beyond 32 bits", "i", "2147483648", REFUSED),
    ("the lowest int", "i", "-2147483648", -2147483648),
    ("a bigint beyond 64 bits", "l", "9223372036854775808", REFUSED),
    ("the greatest bigint", "l", "9223372036854775807", 9223372036854775807),
    ("a bigint of 30 digits", "l", "1" * 30, REFUSED),
    ("an int as text", "i", '"1"', REFUSED),
    ("an int as true", "i", "true", REFUSED),
    ("an int as -0", "i", "-0", 0),
    ("an int with a leading zero", "i", "01", REFUSED),
    ("a double as an int", "d", "5", 5.0),
    ("a double of 2^53+1", "d", "9007199254740993", 9007199254740992.0),
    ("a double as -0.0", "d", "-0.0", -0.0),
    ("a double as -0", "d", "-0", 0.0),
    ("a double NaN", "d", "NaN", float("nan")),
    ("a double Infinity", "d", "Infinity", float("inf")),
    ("a double as the text NaN", "d", '"NaN"', float("nan")),
    ("a double as the text -Infinity", "d", '"-Infinity"', float("-inf")),
    ("a double beyond all", "d", "1e400", REFUSED),
    ("a double as text", "d", '"0.5"', REFUSED),
    ("a real with too many digits", "r", "0.12345678901", REFUSED),
    ("a real beyond all", "r", "1e39", REFUSED),
    ("a string as a number", "s", "1.50", REFUSED),
    ("a string as an object", "s", '{"k":1}', REFUSED),
    ("a string as true", "s", "true", REFUSED),
    ("half of a surrogate pair", "s", '"\\ud800"', REFUSED),
    ("a whole surrogate pair", "s", '"\\ud83d\\ude00"', "😀"),
    ("an escaped NUL", "s", '"a\\u0000b"', "a\0b"),
    ("a raw control character", "s", '"a\x01b"', REFUSED),
    ("an emoji", "s", '"😀"', "😀"),
    ("a boolean as 0", "b", "0", REFUSED),
    ("a boolean as text", "b", '"true"', REFUSED),
    ("a string of null", "s", "null", None),
    ("an array as text", "a", '"[1,2]"', "[1,2]"),
    ("an array with spaces", "a", "[1, 2.50]", "[1,2.50]"),
    ("an array with an emoji", "a", '["😀"]', '["\\uD83D\\uDE00"]'),
    ("an array with escapes", "a", '["\\u00e9\\"\\/"]', '["é\\"/"]'),
    ("an array with -0", "a", "[-0]", "[0]"),
    ("an array with NaN", "a", "[NaN]", "[NaN]"),
    ("an array that does not end", "a", "[1,2}", REFUSED),
    ("a name twice in an object", "a", '{"q":1,"q":2}', '{"q":2}'),
    ("a name with an escape", "\\u0073", '"y"', "y"),
    ("an unknown field", "zz", "1", "unknown"),
]  # fmt: skip


def event(fields: Change | None = None, source: Change | None = None, **parts: str | None) -> str:
    """An update as compact JSON; a part of None is left out."""
    row = _object({**FIELDS, **(fields or {})})
    whole: Change = {
        "before": "null",
        "after": row,
        "source": _object({**SOURCE, **(source or {})}),
    }
    return _object({**whole, "op": '"u"', naming.EPOCH: '"1"', **parts})


def _object(fields: Change) -> str:
    return "{" + ",".join(f'"{n}":{v}' for n, v in fields.items() if v is not None) + "}"


def decoded(value: str | bytes, key: bytes | None = b'{"id":1}', **table: Any) -> Outcome:
    """What becomes of one event between two usual ones, which stay proven."""
    sent = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    usual = event().encode()
    records = [Sent(0, b'{"id":1}', usual), Sent(1, key, sent), Sent(2, b'{"id":1}', usual)]
    strict = replace(STRICT, **table)
    found, slow = agreed(records, strict, plan_with(strict))
    assert slow <= 1
    return found[(0, 1)]


@pytest.mark.parametrize(("field", "text", "value"), [f[1:] for f in FORMS],
                         ids=[f[0] for f in FORMS])  # fmt: skip
def test_a_field_is_taken_in_its_own_form_only(field: str, text: str, value: Any) -> None:
    sent = event({field: text} if field != "\\u0073" else {"s": None, field: text})
    outcome = decoded(sent)
    told = by_firehose(Sent(1, None, sent.encode("utf-8")), STRICT, plan_with(STRICT))
    if value is REFUSED:
        assert outcome.refusal == UNREADABLE_VALUE
        assert isinstance(told, str)
        return
    assert not firehose_differs(told, outcome)
    assert (outcome.refusal, outcome.absent, outcome.misfits) == (None, None, None)
    if field != "zz":
        name = "s" if field == "\\u0073" else field
        assert outcome.row[name] == repr(value)


def test_of_two_fields_of_one_name_the_last_one_counts() -> None:
    assert decoded(event({"i": '1,"i":7'})).row["i"] == "7"


@pytest.mark.parametrize(
    "value",
    [
        b"", b"null", b"[]", b"7", event().encode() + b"x", (event() * 2).encode(),
        event().encode()[:-3], event()[:-1].encode() + b",}", b"\xef\xbb\xbf" + event().encode(),
        event({"s": '"Q"'}).encode().replace(b"Q", b"\xff\xfe"),
        event({"s": '"Q"'}).encode().replace(b"Q", b"\xed\xa0\x80"),
        event({"s": '"Q"'}).encode().replace(b"Q", b"\xc0\xaf"),
        event({"zz": '"Q"'}).encode().replace(b"Q", b"\xff"),
        event().encode("utf-16"),
    ],
)  # fmt: skip
def test_a_value_that_is_no_json_object_is_unreadable(value: bytes) -> None:
    outcome = decoded(value)
    assert (outcome.refusal, outcome.row[naming.OFFSET]) == (UNREADABLE_VALUE, "1")


FAULTS: list[tuple[str, str, bytes | None]] = [
    ("UNKNOWN_OPERATION", event(op='"x"'), b'{"id":1}'),
    ("UNKNOWN_OPERATION", event(op=None), b'{"id":1}'),
    ("UNKNOWN_OPERATION", event(op="1"), b'{"id":1}'),
    ("NO_SEQUENCE", event(source={"sequence": "null"}), b'{"id":1}'),
    ("NO_SEQUENCE", event(source={"sequence": '"[\\"-4\\",\\"5\\"]"'}), b'{"id":1}'),
    ("NO_SEQUENCE", event(source={"sequence": '"[\\"\u0664\\",\\"5\\"]"'}), b'{"id":1}'),
    ("NO_SEQUENCE", event(source={"lsn": "null", "sequence": '"[\\"4\\",null]"'}), b'{"id":1}'),
    ("NO_SEQUENCE", event(source={"lsn": "-1"}), b'{"id":1}'),
    ("NO_SEQUENCE", event(source={"sequence": '"[\\"\\",\\"5\\"]"'}), b'{"id":1}'),
    ("NO_SEQUENCE", event().replace(_object(SOURCE), "null"), b'{"id":1}'),
    ("UNREADABLE_VALUE", event().replace(_object(SOURCE), "7"), b'{"id":1}'),
    ("UNREADABLE_VALUE", event(source={"txId": '"7"'}), b'{"id":1}'),
    ("NO_EPOCH", event(cdc_epoch=None), b'{"id":1}'),
    ("NO_EPOCH", event(cdc_epoch='"1_0"'), b'{"id":1}'),
    ("NO_EPOCH", event(cdc_epoch='"2147483648"'), b'{"id":1}'),
    ("UNREADABLE_KEY", event(), None),
    ("UNREADABLE_KEY", event(), b"null"),
    ("UNREADABLE_KEY", event(), b'{"id":"1"}'),
    ("UNREADABLE_KEY", event(), b'{"id":1}}'),
    ("NO_ROW", event(after="null"), b'{"id":1}'),
    ("UNREADABLE_VALUE", event(after="[]"), b'{"id":1}'),
    ("NULL_KEY", event(), b'{"id":null}'),
    ("NULL_KEY", event(), b"{}"),
    ("NULL_KEY", event({"id": "null"}), b'{"id":null}'),
    ("KEY_MISMATCH", event(), b'{"id":2}'),
    ("KEY_MISMATCH", event({"id": None}), b'{"id":1}'),
    ("NOT_REPRESENTABLE", event({"e": '"infinity"'}), b'{"id":1}'),
    ("NOT_REPRESENTABLE", event({"e": '"2026-02-29T00:00:00Z"'}), b'{"id":1}'),
    ("NOT_REPRESENTABLE", event({"e": '"2026-04-31T00:00:00Z"'}), b'{"id":1}'),
    ("UNREADABLE_VALUE", event({"e": '"infinity"', "i": "1.5"}), b"null"),
    ("OVERSIZED_RECORD", event(cdc_oversized='{"reason":"OVERSIZED_RECORD: big"}'), None),
    ("UNREADABLE_VALUE", event(cdc_oversized="7"), b'{"id":1}'),
]


@pytest.mark.parametrize(("reason", "value", "key"), FAULTS)
def test_the_first_reason_to_refuse_an_event(reason: str, value: str, key: bytes | None) -> None:
    refusal = decoded(value, key).refusal
    assert refusal is not None
    assert refusal.split(":")[0] == reason


@pytest.mark.parametrize(
    ("field", "text", "is_listed"),
    [("i", '"1"', True), ("i", "1.5", True), ("i", "3000000000", False), ("l", "1" * 30, True)],
)
def test_a_misfit_is_listed_unless_it_is_a_large_number(
    field: str, text: str, is_listed: bool
) -> None:
    assert decoded(event({field: text})).misfits == ([field] if is_listed else None)


def test_a_missing_field_is_null_and_listed() -> None:
    outcome = decoded(event({"s": None, "a": None}))
    assert (outcome.absent, outcome.refusal, outcome.row["s"]) == (["s", "a"], None, "None")


def test_a_field_whose_name_is_escaped_in_json_is_read() -> None:
    odd = Column(source='it"s', name="odd", type="text")
    sent = event({'it\\"s': '"y"'})
    table = replace(STRICT, columns=(*STRICT.columns, odd))
    found, slow = agreed([Sent(0, b'{"id":1}', sent.encode())], table, plan_with(table))
    assert (found[(0, 0)].row["odd"], found[(0, 0)].absent, slow) == ("'y'", None, 1)


def test_a_delete_has_its_key_from_the_records_key() -> None:
    row = decoded(event(op='"d"', after="null"), b'{"id":4}').row
    assert (row["id"], row["s"]) == ("4", "None")
    whole = _object({**FIELDS, "id": "1"})
    delete = event(op='"d"', after="null", before=whole)
    row = decoded(delete, b'{"id":4}', replica_identity="full").row
    assert (row["id"], row["s"]) == ("4", "'x'")


@pytest.mark.parametrize("old_row", [True, False])
def test_a_null_that_was_not_sent_is_refused_without_the_old_row(old_row: bool) -> None:
    """The type has no placeholder."""
    columns = (*STRICT.columns[:-2], replace(STRICT.columns[-2], type="timestamp[]"))
    row = _object({name: FIELDS[name] for name in "idlrsb"} | {"id": "1", "a": "null"})
    sent = event({"a": "null"}, before=row if old_row else "null")
    table = replace(STRICT, columns=columns, replica_identity="full")
    found, slow = agreed([Sent(0, b'{"id":1}', sent.encode())], table, plan_with(table))
    refusal = found[(0, 0)].refusal or ""
    assert refusal.startswith("UNSENT_VALUE: 'a'") != old_row
    assert slow == (0 if old_row else 1)
