"""Records that the Kinesis Producer Library has aggregated, taken apart as Firehose does.

An aggregated record is a magic number, a protobuf message, and the message's MD5. The format is
described in the library's repository (awslabs/amazon-kinesis-producer, aggregation-format.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

MAGIC = b"\xf3\x89\x9a\xc2"
_DIGEST_BYTES = 16
# Fields of the message, and of each record in it.
_KEYS, _RECORDS = 1, 3
_KEY_INDEX, _DATA = 1, 3
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # protobuf's wire types
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
_MAX_VARINT_BYTES = 10


class UserRecord(NamedTuple):
    """Record as its producer put it, with its partition key."""

    key: str
    data: bytes


def user_records(data: bytes, key: str) -> list[UserRecord]:
    """Return the records in a Kinesis record; the record itself if it is not aggregated.

    A wrong checksum or message means that it is not: a producer may put any bytes.
    """
    if not data.startswith(MAGIC):
        return [UserRecord(key, data)]
    message = data[len(MAGIC) : -_DIGEST_BYTES]
    digest = hashlib.md5(message, usedforsecurity=False).digest()
    if data[-_DIGEST_BYTES:] != digest:
        return [UserRecord(key, data)]
    try:
        return _parsed(message)
    except (ValueError, IndexError):
        return [UserRecord(key, data)]


def _parsed(message: bytes) -> list[UserRecord]:
    keys: list[str] = []
    found: list[tuple[int, bytes]] = []
    for field, value in _fields(message):
        if field == _KEYS and isinstance(value, bytes):
            keys.append(value.decode())
        elif field == _RECORDS and isinstance(value, bytes):
            found.append(_record(value))
    return [UserRecord(keys[index], data) for index, data in found]


def _record(message: bytes) -> tuple[int, bytes]:
    values = dict(_fields(message))
    index, data = values.get(_KEY_INDEX), values.get(_DATA)
    if not isinstance(index, int) or not isinstance(data, bytes):
        raise ValueError("a record without key or data")
    return index, data


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and value of each field; raise ValueError or IndexError if it is broken."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        wire = tag & 7
        if wire == _VARINT:
            number, at = _varint(message, at)
            yield tag >> 3, number
            continue
        size, at = _varint(message, at) if wire == _BYTES else (_FIXED_BYTES.get(wire, -1), at)
        if size < 0 or at + size > len(message):
            raise ValueError("a field that ends after the message")
        yield tag >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_MAX_VARINT_BYTES):
        byte = message[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("a number of more than ten bytes")
