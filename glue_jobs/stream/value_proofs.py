"""Proofs that the values of a column are what the slow decoder would give.

A value that is not proved is not wrong: the slow decoder decides about its event.
"""

from __future__ import annotations

import re

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdclake.debezium.changelog_rows import parse_json
from cdclake.debezium.field_values import MAX_NESTING, reader
from cdclake.debezium.types import ColumnType

_NUMBER = rb"-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?(?:[eE][+-]?[0-9]+)?"
_POINT = re.compile(
    rb'\{"x":%b,"y":%b,"wkb":"[A-Za-z0-9+/=]*","srid":(?:null|[1-9][0-9]*)\}' % (_NUMBER, _NUMBER)
)
# Of a JSON text without these it is known that it is kept as it is: spaces, escapes, objects, -0.
_CHANGED = re.compile(rb"[\s\\{\xf0-\xff]|-0[,\]]|-0$")


def is_real(values: pa.Array, reals: pa.Array) -> pa.Array:
    """Prove that numbers are what their reals are written as, in the shortest form."""
    return pc.equal(reals.cast(pa.string()).cast(pa.float64()), values)


def kept_text(raw: msgspec.Raw, kind: ColumnType) -> str | None:
    """Return the text that the changelog has for a field of any form; None for NULL.

    Raises RefusedEvent if the slow decoder would refuse it, and ValueError if it is not UTF-8.
    """
    text = bytes(raw)
    if text == b"null":
        return None
    if text[:1] == b'"' and b"\\" not in text:
        return text[1:-1].decode()
    is_point = kind.base == "point" and not kind.array
    is_flat = text.count(b"[") <= MAX_NESTING
    if _POINT.fullmatch(text) if is_point else is_flat and not _CHANGED.search(text):
        return text.decode()
    return str(reader(kind)(parse_json(text)))
