"""Scenario files: what Debezium sends, in short, and what must come of it.

A file below `tests/scenarios/` holds cases by their ids. Of each:

    O1-what-it-shows:          the id in the catalogue (docs/catalogue.md), then words
      shape: soft              a table of `tests.model.shapes`; `plain` (id, v, big) if missing
      alone: true              it needs a table of its own: truncates and new epochs touch all rows
      batches:                 one micro-batch a line, each a list of events
        - [c1@10:5 v=a, u1@20:15 v=b big=?]
      then: {1: {1: [a]}}      live rows after the first batch, if that is worth saying
      state: {1: [b, A]}       live rows in the end: key -> the other columns; ends of NULL left out
      log: c1 u1               the log by position: op and key, each event once
      missing: {1: [big]}      `cdc_toast_missing` of live rows
      refused: [NULL_KEY]      the quarantine in the order of offsets

An event is `<op><key>@<previous commit LSN, or - for null>:<LSN>`, then values (`big=?` was not
sent, what is not named is NULL) and facts: `tx=` (the LSN if missing), `ts=` seconds, `p=` Kafka
partition, `off=` offset (the next one if missing), `epoch=`, `inc` (a row of an incremental
snapshot: no LSN of its own). A key of two columns is `1/x`. A mapping changes what is sent:

    {e: c1@10:5 v=a, key: {id: 2}, after: {v: true}, source: {sequence: null}, before: {v: "0"}}
    {key_bytes: '{"id": 1}', value_bytes: '{rubbish'}      these bytes; value_bytes: null is a tombstone
"""  # noqa: E501 - a line of YAML

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.model.shapes import plan_with, shaped_table

FOLDER = Path(__file__).resolve().parents[1] / "scenarios"
DAY_IN_2023 = 1_700_000_000
Key = tuple[Any, ...]
Live = dict[Key, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Record:
    """One Kafka record; the offset is its own, or the partition's next."""

    partition: int
    offset: int | None
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a case runs in a table that it shares: its own keys, transactions and partitions."""

    number: int = 0

    def key(self, key: int) -> int:
        """The case's key `key`."""
        return self.number * 1000 + key

    def transaction(self, tx: int) -> int:
        """The case's transaction `tx`."""
        return self.number * 1_000_000 + tx

    def offset(self, offset: int) -> int:
        """The case's offset: positions of two cases must differ, as those of two events do."""
        return self.number * 1000 + offset

    def partition(self, partition: int) -> int:
        """The case's Kafka partition `partition`."""
        return self.number * 4 + partition


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario, as its file has it."""

    id: str
    shape: str
    alone: bool
    batches: tuple[tuple[Any, ...], ...]
    then: Mapping[int, Live]
    state: Live
    log: str
    missing: Mapping[Key, list[str]] = field(default_factory=dict)
    refused: tuple[str, ...] = ()

    def records(self, place: Place = Place()) -> list[list[Record]]:
        """The Kafka records of each batch, offsets filled in."""
        following: dict[int, int] = {}
        batches = []
        for batch in self.batches:
            records = [_record(self.shape, event, place) for event in batch]
            batches.append([_placed(record, following, place) for record in records])
        return batches


def _placed(record: Record, following: dict[int, int], place: Place) -> Record:
    offset = following.get(record.partition, 0) if record.offset is None else record.offset
    following[record.partition] = max(following.get(record.partition, 0), offset + 1)
    return Record(record.partition, place.offset(offset), record.key, record.value)


@cache
def cases() -> tuple[Case, ...]:
    """Every case of every file."""
    return tuple(
        _case(name, dict(raw))
        for file in sorted(FOLDER.glob("*.yaml"))
        for name, raw in YAML(typ="safe").load(file.read_text()).items()
    )


def _case(name: str, raw: dict[str, Any]) -> Case:
    shape = raw.pop("shape", "plain")
    case = Case(
        id=name,
        shape=shape,
        alone=raw.pop("alone", False),
        batches=tuple(tuple(batch) for batch in raw.pop("batches")),
        then={step: _live(shape, rows) for step, rows in raw.pop("then", {}).items()},
        state=_live(shape, raw.pop("state")),
        log=raw.pop("log"),
        missing={_key(key): names for key, names in raw.pop("missing", {}).items()},
        refused=tuple(raw.pop("refused", ())),
    )
    if raw:
        raise ValueError(f"{name}: unknown {sorted(raw)}")
    return case


def _live(shape: str, rows: Mapping[Any, Sequence[Any]]) -> Live:
    width = len(shaped_table(shape).value_columns)
    return {_key(key): (*row, *[None] * (width - len(row))) for key, row in rows.items()}


def _key(key: Any) -> Key:
    first, *others = str(key).split("/")
    return (int(first), *others)


def _record(shape: str, event: Any, place: Place) -> Record:
    placeholder = plan_with(shaped_table(shape)).placeholder
    changed = _filled(event, placeholder) if isinstance(event, Mapping) else {"e": event}
    if "value_bytes" in changed:
        key, value = changed["key_bytes"], changed["value_bytes"]
        return Record(place.partition(0), None, _bytes(key), _bytes(value))
    words = str(changed["e"]).split()
    facts = dict(_pair(word) for word in words[1:])
    key, value = _sent(shape, words[0], facts, place)
    value["source"] |= changed.get("source", {})
    if "after" in changed:
        value["after"] = value["after"] and changed["after"] and value["after"] | changed["after"]
    value |= {name: changed[name] for name in ("before", "op", "cdc_epoch") if name in changed}
    if "key" in changed:
        key = changed["key"]
        if key is not None and isinstance(key.get("id"), int):
            key = {**key, "id": place.key(key["id"])}
    offset = int(facts["off"]) if "off" in facts else None
    partition = place.partition(int(facts.get("p", 0)))
    return Record(
        partition,
        offset,
        key and json.dumps(key).encode(),
        json.dumps(value, separators=(",", ":")).encode(),
    )


def _filled(value: Any, placeholder: str) -> Any:
    """What a mapping sends, with this pipeline's placeholder where the file says so."""
    raw = placeholder.encode()
    if isinstance(value, Mapping):
        return {name: _filled(held, placeholder) for name, held in value.items()}
    if isinstance(value, list):
        return [_filled(held, placeholder) for held in value]
    if value == "BASE64":
        return base64.b64encode(raw).decode()
    if value == "CODES":
        return list(raw)
    if value == "NAME_UUID":
        digest = hashlib.md5(raw, usedforsecurity=False).digest()
        return str(uuid.UUID(bytes=digest, version=3))
    return value.replace("PLACEHOLDER", placeholder) if isinstance(value, str) else value


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _pair(word: str) -> tuple[str, Any]:
    name, _, value = word.partition("=")
    return name, value


def _sent(
    shape: str, head: str, facts: Mapping[str, Any], place: Place
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Key and value of an event as Debezium would send it."""
    table = shaped_table(shape)
    op, (named, place_in_log) = head[0], head[1:].split("@")
    prev, lsn = place_in_log.split(":")
    parts = dict(zip(table.key, _key(named) if named else (), strict=False))
    if parts:
        parts["id"] = place.key(parts["id"])
    placeholder = plan_with(table).placeholder
    row = {
        **parts,
        **{
            column.name: placeholder if facts.get(column.name) == "?" else facts.get(column.name)
            for column in table.value_columns
        },
    }
    source = {
        "lsn": None if "inc" in facts else int(lsn),
        "sequence": json.dumps([None if prev == "-" else prev, lsn]),
        "txId": place.transaction(int(facts.get("tx", lsn))),
        "ts_us": int(facts.get("ts", DAY_IN_2023)) * 1_000_000,
    }
    value = {
        "before": None,
        "after": row if op in "cur" else None,
        "source": source,
        "op": op,
        "cdc_epoch": str(facts.get("epoch", 1)),
    }
    return (parts or None), value


def offsets_of(records: Sequence[Record]) -> Iterator[tuple[int, tuple[int, int]]]:
    """By partition, the first and the next offset of a batch."""
    for partition in sorted({record.partition for record in records}):
        offsets = [r.offset for r in records if r.partition == partition and r.offset is not None]
        yield partition, (min(offsets), max(offsets) + 1)
