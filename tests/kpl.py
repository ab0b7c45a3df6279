"""An encoder of the Kinesis Producer Library's aggregation format, for tests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

MAGIC = b"\xf3\x89\x9a\xc2"


def aggregated(records: Sequence[tuple[str, bytes]]) -> bytes:
    """Return records, each with its partition key, as one record of Kinesis."""
    keys = list(dict.fromkeys(key for key, _ in records))
    message = b"".join(_field(1, key.encode()) for key in keys)
    message += _field(2, b"5")  # a table of explicit hash keys
    for key, data in records:
        # The index of the key, that of the hash key, the data, and a tag.
        inner = b"\x08" + _varint(keys.index(key)) + b"\x10\x00" + _field(3, data)
        message += _field(3, inner + _field(4, _field(1, b"tag")))
    return sealed(message)


def sealed(message: bytes) -> bytes:
    """Return the message with its magic number and its checksum."""
    return MAGIC + message + hashlib.md5(message).digest()


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])
