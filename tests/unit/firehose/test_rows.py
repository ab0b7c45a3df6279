"""What a table takes: its own columns, of its own types."""

import datetime
import json
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from cdclake.local.firehose.rows import Misfit, read_row, to_arrow

KINDS = {
    "b": BooleanType(), "i": IntegerType(), "l": LongType(), "f": FloatType(), "d": DoubleType(),
    "s": StringType(), "bytes": BinaryType(), "day": DateType(), "at": TimestamptzType(),
    "list": ListType(100, StringType(), element_required=False),
}  # fmt: skip
SCHEMA = Schema(
    *(NestedField(n, name, kind, required=False) for n, (name, kind) in enumerate(KINDS.items(), 1))
)


@pytest.mark.parametrize(
    ("column", "value", "held"),
    [
        ("b", True, True), ("i", -(2**31), -(2**31)), ("l", 2**63 - 1, 2**63 - 1), ("f", 1.5, 1.5),
        ("d", 1, 1.0), ("s", "ä", "ä"), ("bytes", "AP8=", b"\x00\xff"),
        ("list", ["x"], ["x"]), ("l", None, None),
        ("day", 20_000, datetime.date(2024, 10, 4)),
        ("at", 1, datetime.datetime(1970, 1, 1, microsecond=1, tzinfo=datetime.UTC)),
    ],
)  # fmt: skip
def test_what_fits_is_held_as_it_is(column: str, value: Any, held: Any) -> None:
    row = read_row(json.dumps({column: value}).encode(), SCHEMA)
    [stored] = to_arrow([row], SCHEMA).to_pylist()
    assert stored == {**dict.fromkeys(KINDS), column: held}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"no", "Iceberg.InvalidRecord"), (b"[1]", "Iceberg.InvalidRecord"),
        (b'{"z": 1}', "Iceberg.UnknownColumn"), (b'{"i": true}', "Iceberg.WrongType"),
        (b'{"i": 2147483648}', "Iceberg.WrongType"), (b'{"l": 1.5}', "Iceberg.WrongType"),
        (b'{"s": 1}', "Iceberg.WrongType"), (b'{"bytes": "?"}', "Iceberg.WrongType"),
        (b'{"b": 1}', "Iceberg.WrongType"),
        (b'{"d": "1"}', "Iceberg.WrongType"), (b'{"list": [1]}', "Iceberg.WrongType"),
        (b'{"day": "2024-10-04"}', "Iceberg.WrongType"),
    ],
)  # fmt: skip
def test_what_does_not_fit_says_why(data: bytes, code: str) -> None:
    with pytest.raises(Misfit) as misfit:
        read_row(data, SCHEMA)
    assert misfit.value.code == code
