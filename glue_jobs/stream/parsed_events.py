"""Strict parsing of a block of Kafka records to structs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from cdclake.jobs.stream.event_structs import EventStructs


@dataclass(frozen=True, slots=True)
class ParsedEvents:
    """Events whose key and value are as declared, and their places in the block."""

    structs: EventStructs
    events: list[Any]
    keys: list[Any]
    places: Sequence[int]


def parse_events(
    structs: EventStructs, values: Sequence[bytes | None], keys: Sequence[bytes | None]
) -> ParsedEvents:
    """Parse the records that are as declared, and leave out all others."""
    events, failed = _parsed(structs.decode_value, values)
    event_keys, failed_keys = _parsed(structs.decode_key, keys)
    failed |= failed_keys
    if not b"".join(filter(None, values)).isascii():
        failed.update(i for i, value in enumerate(values) if value and not _is_utf8(value))
    if not failed:
        return ParsedEvents(structs, events, event_keys, range(len(events)))
    places = [i for i in range(len(events)) if i not in failed]
    return ParsedEvents(structs, [events[i] for i in places], [event_keys[i] for i in places],
                        places)  # fmt: skip


def _parsed(
    decode: Callable[[Any], Any], records: Sequence[bytes | None]
) -> tuple[list[Any], set[int]]:
    """Return each record's struct, and the places of those that have none."""
    found: list[Any] = []
    failed: set[int] = set()
    rest = map(decode, records)
    while True:
        try:
            found.extend(rest)  # when it fails, it has the structs before, and `rest` those after
            return found, failed
        # A record without a value is no buffer, which is a TypeError. Lists within lists, which
        # any client may send, exceed Python's depth of calls.
        except (msgspec.MsgspecError, UnicodeDecodeError, TypeError, RecursionError):
            failed.add(len(found))
            found.append(None)


def _is_utf8(value: bytes) -> bool:
    """Return whether the whole value is UTF-8; msgspec only checks what it reads."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
