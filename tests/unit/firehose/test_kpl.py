"""Records of the Kinesis Producer Library: taken apart, or left as they are."""

import pytest

from cdclake.local.firehose.kpl import UserRecord, user_records
from tests.kpl import MAGIC, aggregated, sealed

# Two records with the keys "a" and "b", as protoc encodes the library's message.
KNOWN = bytes.fromhex("0a01610a01621a0608001a0231311a0608011a023232")
BROKEN = {
    "no checksum": MAGIC + KNOWN,
    "a wrong checksum": MAGIC + KNOWN + b"\0" * 16,
    "a cut message": sealed(KNOWN[:-1]),
    "a cut number": sealed(b"\x80"),
    "an endless number": sealed(b"\x08" + b"\xff" * 11),
    "a key that is not in the table": sealed(KNOWN[3:]),
    "a record without data": sealed(b"\x1a\x02\x08\x00"),
    "a group": sealed(b"\x0b\x0c"),
    "a key that is not UTF-8": sealed(b"\x0a\x01\xff"),
}


def test_an_aggregated_record_is_taken_apart() -> None:
    assert user_records(sealed(KNOWN), "x") == [UserRecord("a", b"11"), UserRecord("b", b"22")]
    given = [("k1", b"{}"), ("k2", b"x" * 1_000_000), ("k1", b""), ("\u00fc", bytes(range(256)))]
    assert user_records(aggregated(given), "x") == [UserRecord(*each) for each in given]
    assert user_records(sealed(b""), "x") == []


@pytest.mark.parametrize("data", [b"", b"{}", MAGIC, *BROKEN.values()])
def test_what_is_not_aggregated_stays_one_record(data: bytes) -> None:
    assert user_records(data, "x") == [UserRecord("x", data)]
