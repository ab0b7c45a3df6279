"""Events of erased keys do not pass Firehose's function, and others do."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from cdclake import naming
from cdclake.debezium.changelog_rows import LogRows
from cdclake.erasures import KeyHash
from cdclake.errors import InputError
from cdclake.firehose.erased_rows import REGISTER_SECONDS, Erased, RecentRegister
from cdclake.firehose.record_transform import RecordTransform
from tests.recorded.firehose import INGESTED_AT, handed_over
from tests.recorded.recording import Record
from tests.unit.deployed.erasing import (
    CONTROL,
    SECRET,
    above,
    in_memory,
    keep_salt,
    of_key,
    register,
    with_plan,
)
from tests.unit.deployed.redriving import RECORDED, plan, rows

Answers = list[dict[str, Any]]
PLAIN, PAIR = plan().table("plain"), plan().table("pair")
CHANGED, RECREATED = (4,), (6,)  # keys whose events are c, u, u, d and c, d, c, d, c


def records(table: str) -> list[Record]:
    topic = plan().table(table).topic
    return [each for each in RECORDED.of_topic(topic) if each.value is not None]


def answered(erased: Erased, given: list[Record]) -> Answers:
    event = handed_over(given)
    found: Answers = RecordTransform(plan(), lambda: erased).answer(event["records"], INGESTED_AT)
    assert [each["recordId"] for each in found] == [each["recordId"] for each in event["records"]]
    return found


def row(answer: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(base64.b64decode(answer["kafkaRecordValue"]))
    return made


def changed(record: Record, change: Callable[[dict[str, Any]], Any]) -> Record:
    event = record.event
    change(event)
    return replace(record, value=json.dumps(event).encode())


def test_exactly_the_older_events_of_erased_keys_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made, known = rows("plain"), answered({}, records("plain"))
    gone, recreated = of_key(PLAIN, made, CHANGED), of_key(PLAIN, made, RECREATED)
    until = recreated[2][naming.POSITION]
    erased = in_memory(PLAIN, {CHANGED: above(gone), RECREATED: until})
    with caplog.at_level(logging.INFO):
        found = answered(erased, records("plain"))
    older = [*gone, *recreated[:2]]
    assert {each[naming.OP] for each in older} == {"c", "u", "d"}
    dropped = [was for was, now in zip(known, found, strict=True) if now["result"] == "Dropped"]
    assert sorted(map(str, map(row, dropped))) == sorted(
        str({**each, naming.INGESTED_AT: INGESTED_AT}) for each in json.loads(json.dumps(older))
    )
    kept = [pair for pair in zip(known, found, strict=True) if pair[1]["result"] != "Dropped"]
    assert all(was == now for was, now in kept)
    assert len(kept) == len(known) - 6
    [logged] = caplog.messages
    assert logged == f"6 of {len(known)} dropped: their keys were erased"


def test_composite_keys_are_recognized() -> None:
    key = (1, "one")
    gone = of_key(PAIR, rows("pair"), key)
    found = answered(in_memory(PAIR, {key: above(gone)}), records("pair"))
    assert [each["result"] for each in found].count("Dropped") == len(gone) == 5


def test_refused_events_are_dropped_if_key_and_position_say_so() -> None:
    by_offset = {each.offset: each for each in records("plain")}
    gone, others = (of_key(PLAIN, rows("plain"), key) for key in (CHANGED, RECREATED))
    first, last, other = (by_offset[e[naming.OFFSET]] for e in (gone[0], gone[-1], others[0]))
    position = gone[-1][naming.POSITION]
    erased = in_memory(PLAIN, {CHANGED: position})
    unknown = [changed(each, lambda event: event.update(op="m")) for each in (first, last, other)]
    cases = [
        *unknown,
        changed(first, lambda event: event["after"].update(v="text")),
        changed(first, lambda event: event.pop("cdc_epoch")),
        changed(first, lambda event: event.update(after=None)),
    ]
    results = [each["result"] for each in answered(erased, cases)]
    failed = "ProcessingFailed"
    assert results == ["Dropped", failed, failed, "Dropped", failed, failed]
    assert [each["result"] for each in answered({}, cases)] == [failed] * 6


def test_an_event_that_a_fault_refuses_is_dropped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = of_key(PLAIN, rows("plain"), CHANGED)
    erased = in_memory(PLAIN, {CHANGED: above(gone)})
    monkeypatch.setattr(LogRows, "row", None)  # a TypeError
    found = {each["result"] for each in answered(erased, records("plain"))}
    assert found == {"Dropped", "ProcessingFailed"}


def test_only_keys_of_older_events_are_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    made, hashed = rows("plain"), []
    gone = of_key(PLAIN, made, RECREATED)[:1]
    erased = in_memory(PLAIN, {RECREATED: above(gone)})
    real = KeyHash.digest

    def digest(self: KeyHash, values: Any) -> str:
        hashed.append(values)
        return real(self, values)

    monkeypatch.setattr(KeyHash, "digest", digest)
    answered(erased, records("pair"))
    assert hashed == []
    answered(erased, records("plain"))
    older = [each for each in made if each[naming.POSITION] < erased["plain"].newest]
    assert 0 < len(hashed) == len(older) < len(made)


class Clients:
    """Clients of moto whose requests are noted."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    def __call__(self, service: str) -> Any:
        client = boto3.client(service)
        client.meta.events.register("before-call.*", self._note)
        return client

    def _note(self, model: Any, **_: Any) -> None:
        self.requests.append(model.name)


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@pytest.fixture
def recent(redrive_deployed: None, now: list[float]) -> tuple[RecentRegister, Clients]:
    clients = Clients()
    made = RecentRegister.of(clients, control=CONTROL, salt=SECRET)
    made._clock = lambda: now[0]
    return made, clients


def test_a_register_is_seen_after_its_seconds_and_not_before(
    recent: tuple[RecentRegister, Clients], now: list[float]
) -> None:
    registers, clients = recent
    keep_salt()
    assert registers.read() == {}
    register(PLAIN, CHANGED, "1")
    now[0] += REGISTER_SECONDS - 0.001
    assert registers.read() == {}
    assert clients.requests == ["ListObjectsV2"]
    now[0] += 0.001
    assert registers.read()["plain"].refuses(CHANGED, "0")
    assert clients.requests == ["ListObjectsV2"] * 2 + ["GetObject", "GetSecretValue"]
    register(PAIR, (1, "one"), "1")
    now[0] += REGISTER_SECONDS
    assert registers.read().keys() == {"plain", "pair"}
    assert clients.requests.count("GetSecretValue") == 1


def test_a_register_that_has_not_changed_is_not_read_again(
    recent: tuple[RecentRegister, Clients], now: list[float]
) -> None:
    registers, clients = recent
    keep_salt()
    register(PLAIN, CHANGED, "1")
    register(PAIR, (1, "one"), "1")
    first = registers.read()
    now[0] += REGISTER_SECONDS
    assert all(registers.read()[table] is keys for table, keys in first.items())
    assert clients.requests.count("GetObject") == 2
    register(PAIR, (2, "two"), "1")
    now[0] += REGISTER_SECONDS
    again = registers.read()
    assert again["plain"] is first["plain"]
    assert again["pair"].refuses((2, "two"), "0")
    assert clients.requests.count("GetObject") == 3


def test_a_clock_that_was_set_back_makes_no_register_last(
    recent: tuple[RecentRegister, Clients], now: list[float]
) -> None:
    registers, _ = recent
    keep_salt()
    registers.read()
    register(PLAIN, CHANGED, "1")
    now[0] -= 3600
    assert registers.read().keys() == {"plain"}


def test_a_call_without_the_register_fails_even_if_it_was_read_before(
    recent: tuple[RecentRegister, Clients], now: list[float]
) -> None:
    registers, _ = recent
    transform = RecordTransform(plan(), registers.read)
    given = handed_over(records("plain"))["records"]
    assert transform.answer(given, INGESTED_AT)
    boto3.client("s3").delete_bucket(Bucket=CONTROL.split("/")[2])
    now[0] += REGISTER_SECONDS
    for _ in range(2):
        with pytest.raises(ClientError, match="NoSuchBucket"):
            transform.answer(given, INGESTED_AT)


def test_another_salt_fails_the_call(recent: tuple[RecentRegister, Clients]) -> None:
    registers, _ = recent
    keep_salt()
    register(PLAIN, CHANGED, "1", salt="other")
    with pytest.raises(InputError, match="another salt"):
        RecordTransform(plan(), registers.read).answer([], INGESTED_AT)


def test_the_handler_reads_the_environment(
    redrive_deployed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = with_plan("firehose_changes", tmp_path, monkeypatch)
    keep_salt()
    gone = of_key(PLAIN, rows("plain"), CHANGED)
    register(PLAIN, CHANGED, above(gone))
    found = function.handler(handed_over(records("plain")), None)["records"]
    assert [each["result"] for each in found].count("Dropped") == len(gone)
    function = with_plan("firehose_changes", tmp_path, monkeypatch, CONTROL="s3://absent/control")
    with pytest.raises(ClientError, match="NoSuchBucket"):
        function.handler(handed_over(records("plain")), None)
