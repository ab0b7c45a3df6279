"""The function behind Firehose: each record answered once, with a right row or with none."""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdclake import naming, zip_files
from cdclake.debezium.changelog_rows import LogRows
from cdclake.debezium.refusals import NON_FINITE
from cdclake.firehose.record_transform import RecordTransform
from cdclake.iceberg.schemas import changes_schema
from cdclake.plan import Plan, Table
from cdclake.quality_rule import QualityRule, ValueLimit
from cdclake.stacks.bundles import build_firehose_changes
from tests.load_function import load_file
from tests.recorded.expected import Expected, expected_in_order, in_key_order, is_unheld, value_of
from tests.recorded.firehose import INGESTED_AT, delivered, handed_over, rows_of
from tests.recorded.limits import LIMITS
from tests.recorded.recording import EPOCH, Record, Recording, names
from tests.recorded.values import of_event
from tests.unit.deployed.erasing import CONTROL, SECRET

recorded = lru_cache(Recording.load)
CHANGING = ("public.shifting", "public.unprotected")  # in tests/spark/test_recorded.py
NON_FINITES = {"NaN", "Infinity", "-Infinity"}
STEADY = [
    (name, table.source)
    for name in names()
    for table in recorded(name).plan.tables
    if table.source not in CHANGING
]


@lru_cache
def plan() -> Plan:
    return delivered(recorded("changes").plan)


@lru_cache
def transform() -> RecordTransform:
    return RecordTransform(plan(), dict)


@lru_cache
def events() -> list[Record]:
    return recorded("changes").of_topic("changes.public.plain")


def answers(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = transform().answer(records, INGESTED_AT)
    assert [answer["recordId"] for answer in told] == [record["recordId"] for record in records]
    return told


def row(answer: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(base64.b64decode(answer["kafkaRecordValue"]))
    return made


@pytest.mark.parametrize(("name", "source"), STEADY, ids=lambda part: part)
def test_each_row_says_what_postgresql_said(name: str, source: str) -> None:
    recording = recorded(name)
    table = recording.plan.table(source)
    sent = [record for record in recording.of_topic(table.topic) if record.value is not None]
    made = rows_of(sent, table, recording.plan)
    keys = [column.source for column in table.key_columns]
    in_order = in_key_order(
        sent,
        lambda record: record.event["op"],
        lambda record: [str(json.loads(record.key or b"{}")[key]) for key in keys],
    )
    expected = expected_in_order(table, recording.said_of(source))
    for record, event in zip(in_order, expected, strict=True):
        assert problems(table, made[record.offset], event) == [], event.key


def problems(table: Table, told: dict[str, Any] | str, event: Expected) -> list[Any]:
    """What the row has otherwise than expected, or why it should not have been refused."""
    if isinstance(told, str):
        infinite = told == NON_FINITE and NON_FINITES & {*event.row.values()}
        unheld = [c.name for c in table.columns if is_unheld(c, event.row.get(c.source))]
        return [] if infinite or any(repr(name) in told for name in unheld) else [told]
    known = LIMITS.get(table.table, {})
    found: list[Any] = [] if set(told[naming.UNAVAILABLE] or ()) == event.unsent else ["unsent"]
    for column in table.columns:
        value, text = told[column.name], event.row.get(column.source)
        came = value if value is None or column.mask else of_event(column.column_type, value)
        if column.source not in known and came != value_of(column, text):
            found.append((column.source, value, text))
    return found


@pytest.mark.parametrize("name", names())
def test_each_row_stands_where_its_event_says(name: str) -> None:
    phases = set()
    for table in recorded(name).plan.tables:
        records = {record.offset: record for record in recorded(name).of_topic(table.topic)}
        for offset, told in rows_of([*records.values()], table, recorded(name).plan).items():
            if isinstance(told, str):
                continue
            event = records[offset].event
            source = event["source"]
            prev, lsn = (int(text or 0) for text in json.loads(source["sequence"]))
            lsn, phase = source["lsn"] or lsn, 0 if event["op"] == "r" else 1
            phases.add((phase, source["lsn"] is None, prev == 0))
            assert (
                told[naming.POSITION] == f"{EPOCH:08x}.{prev:016x}.{phase}.{lsn:016x}.{offset:016x}"
            )
            assert (told[naming.PREV_COMMIT_LSN], told[naming.LSN]) == (prev, lsn)
            assert (told[naming.PHASE], told[naming.EPOCH]) == (phase, EPOCH)
            assert (told[naming.TX_ID], told[naming.COMMITTED_AT]) == (
                source["txId"],
                source["ts_us"],
            )
            assert (told[naming.PARTITION], told[naming.OFFSET]) == (0, offset)
    assert {phase for phase, _, _ in phases} == {0, 1}
    assert name != "snapshots" or any(incremental for _, incremental, _ in phases)


def changed(record: Record, change: Callable[[dict[str, Any]], Any]) -> bytes:
    event = record.event
    return json.dumps(change(event) or event).encode()


def with_value(record: dict[str, Any], value: bytes | None) -> dict[str, Any]:
    encoded = {"kafkaRecordValue": base64.b64encode(value).decode()} if value is not None else {}
    return {k: v for k, v in record.items() if k != "kafkaRecordValue"} | encoded


def set_op(event: dict[str, Any]) -> None:
    event["op"] = "m"


def set_source(**source: Any) -> Callable[[dict[str, Any]], None]:
    return lambda event: event["source"].update(source)


def dropped(record: dict[str, Any]) -> dict[str, str]:
    return {"recordId": record["recordId"], "result": "Dropped"}


HEARTBEAT = b'{"ts_ms":1795305935855,"cdc_epoch":"7"}'
BAD: dict[str, tuple[Callable[[Record], bytes | None], str]] = {
    "tombstone": (lambda _: None, "Dropped"),
    "empty": (lambda _: b"", "Dropped"),
    "null": (lambda _: b"null", "Dropped"),
    "wrapped tombstone": (lambda _: b'{"schema":null,"payload":null}', "Dropped"),
    "heartbeat": (lambda _: HEARTBEAT, "Dropped"),
    "our own table": (lambda r: changed(r, set_source(schema="cdclake")), "Dropped"),
    "with its schema": (
        lambda r: changed(r, lambda event: {"schema": {"type": "struct"}, "payload": event}),
        "Ok",
    ),
    "unknown operation": (lambda r: changed(r, set_op), "UNKNOWN_OPERATION"),
    "unknown table": (lambda r: changed(r, set_source(table="nobody")), "UNKNOWN_TABLE"),
    "no place": (lambda r: changed(r, set_source(sequence=None)), "NO_SEQUENCE"),
    "odd place": (lambda r: changed(r, set_source(sequence="[x]", lsn=None)), "NO_SEQUENCE"),
    "large place": (lambda r: changed(r, set_source(lsn=1 << 63)), "UNREADABLE_VALUE"),
    "no epoch": (lambda r: changed(r, lambda event: event.pop("cdc_epoch") and None), "NO_EPOCH"),
    "no row": (lambda r: changed(r, lambda event: event.update(after=None)), "NO_ROW"),
    "no key": (lambda r: changed(r, lambda event: event["after"].update(id=None)), "NULL_KEY"),
    "text for a number": (
        lambda r: changed(r, lambda event: event["after"].update(id="1")),
        "UNREADABLE_VALUE",
    ),
    "too large a number": (
        lambda r: changed(r, lambda event: event["after"].update(v=1 << 31)),
        "UNREADABLE_VALUE",
    ),
    "a column less": (
        lambda r: changed(r, lambda event: event["after"].pop("v") and None),
        "ABSENT_COLUMN",
    ),
    "no JSON": (lambda _: b'{"op":', "UNREADABLE_VALUE"),
    "no object": (lambda _: b"[1]", "UNREADABLE_VALUE"),
    "no UTF-8": (lambda _: b'"\xff"', "UNREADABLE_VALUE"),
    "nested too deep": (lambda _: b"[" * 100_000, "UNREADABLE_VALUE"),
    "too many digits": (lambda _: b"9" * 10_000, "UNREADABLE_VALUE"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_record_is_answered_and_its_neighbours_are_too(
    case: str, caplog: pytest.LogCaptureFixture
) -> None:
    change, expected = BAD[case]
    records = handed_over(events()[:3])["records"]
    good = answers(records)
    records[1] = with_value(records[1], change(events()[1]))
    told = answers(records)
    assert [told[0], told[2]] == [good[0], good[2]]
    if expected in ("Dropped", "Ok"):
        assert told[1] == (good[1] if expected == "Ok" else dropped(records[1]))
    else:
        assert told[1] == {"recordId": records[1]["recordId"], "result": "ProcessingFailed"}
        assert f"1 of 3 failed: {expected}" in caplog.text
        assert [vars(each).get("refused") for each in caplog.records][-1] == 1  # is counted


def test_what_is_no_base64_fails_alone():
    records = handed_over(events()[:2])["records"]
    records[0]["kafkaRecordValue"] = "a"
    assert [answer["result"] for answer in answers(records)] == ["ProcessingFailed", "Ok"]


@pytest.mark.parametrize("spelled", ['"NaN"', '"-Infinity"', "NaN", "1e999"])
def test_a_value_that_json_has_not_fails_in_words(spelled: str) -> None:
    recording = recorded("types")
    table = recording.plan.table("public.typed")
    record = next(r for r in recording.of_topic(table.topic) if r.value and b'"op":"r"' in r.value)
    value = record.value.replace(b'"c_double":1.0E-7', f'"c_double":{spelled}'.encode())  # type: ignore[union-attr]
    assert value != record.value
    odd = Record(record.topic, 0, record.offset, None, value)
    [told] = rows_of([odd], table, recording.plan).values()
    assert isinstance(told, str)
    assert told.startswith("NON_FINITE")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=5,
)
PLACES = [
    ("op",), ("before",), ("after",), ("source",), ("cdc_epoch",), ("after", "id"),
    ("after", "note"), ("after", "amount"), ("after", "at"),
    ("source", "sequence"), ("source", "lsn"),
    ("source", "table"), ("source", "schema"), ("source", "txId"), ("source", "ts_us"),
]  # fmt: skip


@given(place=st.sampled_from(PLACES), value=JSON)
@settings(max_examples=100, deadline=None, database=None)
def test_whatever_an_event_holds_its_record_is_answered_alone(
    place: tuple[str, ...], value: Any
) -> None:
    event: dict[str, Any] = events()[0].event
    part = event
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    records = handed_over(events()[:2])["records"]
    records[0] = with_value(records[0], json.dumps(event).encode())
    odd, good = answers(records)
    assert good["result"] == "Ok"
    if odd["result"] == "Ok":
        columns = changes_schema(plan().table("plain"), plan()).columns
        assert row(odd).keys() == dict(columns).keys()
        assert row(odd)["id"] is not None


def test_a_fault_of_ours_fails_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = LogRows.row

    def faulty(self: LogRows, event: Any, place: Any, ingested_at: int) -> dict[str, Any]:
        if place.offset == events()[1].offset:
            raise KeyError("a fault")
        return rows(self, event, place, ingested_at)

    monkeypatch.setattr(LogRows, "row", faulty)
    told = answers(handed_over(events()[:3])["records"])
    assert [answer["result"] for answer in told] == ["Ok", "ProcessingFailed", "Ok"]


def test_an_answer_stays_below_the_limit_and_what_has_no_room_fails():
    large = changed(events()[0], lambda event: event["after"].update(note="é" * 600_000))
    records = handed_over(events()[:6])["records"]
    records = [with_value(record, large) if n % 2 else record for n, record in enumerate(records)]
    records += [{**record, "recordId": f"{record['recordId']}-again"} for record in records]
    told = answers(records)
    assert len(json.dumps({"records": told})) <= 6_291_456
    results = [answer["result"] for answer in told]
    assert results == ["Ok"] * 6 + ["Ok", "ProcessingFailed"] * 3


def test_without_its_place_in_kafka_a_row_is_the_same_but_for_that():
    [record] = handed_over(events()[:1])["records"]
    [known], [unknown] = answers([record]), answers([{**record, "mskRecordMetadata": None}])
    place = {naming.PARTITION: None, naming.OFFSET: None}
    position = row(known)[naming.POSITION]
    assert row(unknown) == row(known) | place | {naming.POSITION: position[:-16] + "0" * 16}


def test_each_row_is_routed_to_its_own_log():
    [answer] = answers(handed_over(events()[:1])["records"])
    assert answer["metadata"]["otfMetadata"] == {
        "destinationDatabaseName": plan().lake_database,
        "destinationTableName": "plain_changes",
        "operation": "insert",
    }


def test_a_streamed_table_is_not_written_by_firehose(caplog: pytest.LogCaptureFixture) -> None:
    streaming = RecordTransform(recorded("changes").plan, dict)
    [answer] = streaming.answer(handed_over(events()[:1])["records"], INGESTED_AT)
    assert answer["result"] == "ProcessingFailed"
    assert "UNKNOWN_TABLE" in caplog.text


def test_withheld_rows_raise_no_alarm_and_their_values_are_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limit = ValueLimit(column="note", test="in", allowed=("first", "second"))
    rule = QualityRule(name="in(note)", kind="rows", limit=limit)
    tables = tuple(replace(table, checks=(rule,)) for table in plan().tables)
    ruled = RecordTransform(replace(plan(), tables=tables), dict)
    results = [a["result"] for a in ruled.answer(handed_over(events()[:4])["records"], INGESTED_AT)]
    assert results == ["Ok", "Ok", "ProcessingFailed", "ProcessingFailed"]  # their note is `none`
    [logged] = caplog.records
    assert logged.getMessage().startswith(
        "2 of 4 failed: BROKEN_RULE: in(note) is broken by column 'note'; the first at 0:"
    )
    assert (vars(logged).get("withheld"), vars(logged).get("refused")) == (2, None)


def test_the_zip_runs_the_same_code(
    redrive_deployed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zip_files, "BUILT", tmp_path / "built")
    monkeypatch.setenv("CONTROL", CONTROL)
    monkeypatch.setenv("MASK_SALT", SECRET)
    packed = build_firehose_changes(plan())
    assert packed == build_firehose_changes(plan())
    with zipfile.ZipFile(packed.path) as archive:
        archive.extractall(tmp_path)
    handler = load_file(tmp_path / "firehose_changes.py").handler
    given = handed_over(events()[:3])
    told = json.loads(json.dumps(handler(given, None)))["records"]
    results = [answer["result"] for answer in told]
    assert results == [answer["result"] for answer in answers(given["records"])]
