"""Keys of floating-point numbers have one hash, wherever an erasure meets them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from cdclake import naming
from cdclake.debezium.record_key import record_key
from cdclake.erasures import ErasedKeys, Erasures, KeyHash
from cdclake.firehose.erased_rows import ErasedEvent, check_row
from cdclake.trace.row_key import RowKey
from tests.unit.postgres.tables import declared

REALS = declared(("id", "real"), ("number", "integer"))
HASHED = KeyHash.of("orders", "s")


def erased(number: float) -> ErasedKeys:
    """Erase the row as `forget` does, with the key as psycopg reads it from the source."""
    key = RowKey(REALS, (str(number),), {"id": number})
    erasures = Erasures(HASHED.fingerprint).added([HASHED.digest(key.parts)], "2")
    return ErasedKeys.of("orders", "s", erasures)


@pytest.mark.parametrize("number", [0.1, 16777216.0, 3.4028235e38, 1e-45, float("inf")])
def test_a_real_is_found_in_tables_and_in_records(number: float) -> None:
    keys = erased(number)
    stored = pa.array([number], pa.float32()).to_pylist()
    assert keys.refuses(stored, "1")
    spelled = {float("inf"): "Infinity"}.get(number, number)
    assert keys.refuses(record_key(REALS, json.dumps({"id": spelled}).encode(), None), "1")
    with pytest.raises(ErasedEvent):
        check_row(REALS, {"id": number, naming.POSITION: "1"}, {"orders": keys})
    check_row(REALS, {"id": 0.5, naming.POSITION: "1"}, {"orders": keys})


def test_a_key_of_double_precision_keeps_its_digits() -> None:
    doubles = declared(("id", "double precision"), ("number", "integer"))
    assert record_key(doubles, b'{"id": 0.1}', None) == [0.1]


def test_both_zeros_have_the_hash_of_one_key() -> None:
    assert HASHED.digest([-0.0, 1]) == HASHED.digest([0.0, 1])
    assert HASHED.digest([-0.5]) != HASHED.digest([0.5])
