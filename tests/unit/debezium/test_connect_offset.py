"""The record of a connector's position, compared with one that a real worker wrote.

`tests/local/test_bulk_handover.py` compares the recorded one with a running worker's.
"""

from __future__ import annotations

import json

import pytest

from cdclake.debezium.connect_offset import UNFINISHED, offset_key, offset_value, stored_lsn
from tests.recorded.recording import FOLDER

RECORDED = json.loads((FOLDER / "connect_offset.json").read_text())


def test_key_and_value_are_those_of_the_worker():
    assert offset_key("shop-source", "shop") == RECORDED["key"]
    assert offset_value(RECORDED["lsn"]) == RECORDED["value"]


@pytest.mark.parametrize(
    ("value", "lsn"),
    [
        (RECORDED["value"], RECORDED["lsn"]),
        ('{"lsn_proc":7,"lsn":8,"txId":1,"ts_usec":2}', 8),  # of a connector that has streamed
        (UNFINISHED, None),
        (None, None),  # no record, or a deleted one
        ("", None),
    ],
)
def test_the_position_of_a_stored_record(value, lsn):
    assert stored_lsn(value) == lsn


def test_the_record_of_an_unfinished_load_has_no_number():
    assert not isinstance(json.loads(UNFINISHED)["lsn"], int)
