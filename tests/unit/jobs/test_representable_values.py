"""Proofs of instants: a block that one cast proves, and blocks that need the pattern."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from cdclake.debezium.types import parse_type
from cdclake.jobs.apply.representable_values import Proof, representable

USUAL = ["2026-11-27T10:00:00Z", "2026-11-27T10:00:00.5Z", "1000-01-01T00:00:00.123456Z"]
UNUSUAL = [
    "0999-12-31T23:59:59Z",
    "2026-02-30T10:00:00Z",
    "2026-06-31T10:00:00.123456Z",
    "2026-11-27T24:00:00Z",
    "2026-11-27T10:60:00Z",
    "2026-11-27T10:00:60Z",
    "2026-11-27 10:00:00Z",
    "2026-11-27T10:00:00+00:00",
    "2026-11-27T10:00:00.12+01Z",
    "2026-11-27T10:00:00.z",
    "2026-11-27T10:00Z",
    "20261127T1000000000Z",
    "12026-11-27T10:00:00Z",
    "infinity",
    "",
]


def proof() -> Proof:
    kind = parse_type("timestamptz")
    assert kind is not None
    prove = representable(kind)
    assert prove is not None
    return prove


def proved(values: Sequence[str | None]) -> list[bool | None]:
    """Return what is proved of the values; Spark passes them with large offsets."""
    prove = proof()
    found, of_large = (
        prove(pa.array(values, kind)).to_pylist() for kind in (pa.string(), pa.large_string())
    )
    assert found == of_large
    kept: list[bool | None] = found
    return kept


def test_usual_instants_are_proved_together() -> None:
    assert proved(USUAL) == [True] * len(USUAL)
    assert proved([]) == []


def test_null_is_not_proved() -> None:
    assert proved([USUAL[0], None, USUAL[1]]) == [True, None, True]
    assert proved([None]) == [None]


@pytest.mark.parametrize("text", UNUSUAL)
def test_an_unusual_text_is_not_proved_and_the_others_of_its_block_are(text: str) -> None:
    assert proved([text]) == [False]
    assert proved([*USUAL, None, text]) == [True] * len(USUAL) + [None, False]


def test_more_than_six_digits_of_a_second_are_proved_by_the_pattern() -> None:
    assert proved([*USUAL, "2026-11-27T10:00:00.123456789Z"]) == [True] * (len(USUAL) + 1)


def test_a_part_of_an_array_is_proved_by_its_own_values() -> None:
    prove = proof()
    for kind in (pa.string(), pa.large_string()):
        values = pa.array(["infinity", *USUAL, "infinity"], kind)
        assert prove(values.slice(1, len(USUAL))).to_pylist() == [True] * len(USUAL)
        assert prove(values.slice(1)).to_pylist() == [True] * len(USUAL) + [False]
        other = pa.array([USUAL[0], "2026-11-27 10:00:00+00:00"], kind)
        assert prove(other.slice(1, 1)).to_pylist() == [False]
