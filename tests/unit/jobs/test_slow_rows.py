"""Rows of the slow decoder in a block, at their places among those of the fast one."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cdclake import naming
from cdclake.jobs.stream.block_decoder import BlockDecoder
from cdclake.jobs.stream.changelog_columns import REFUSAL
from tests.model.shapes import plan_with, shaped_table

TABLE = shaped_table("plain")
FAST, UNPARSED, UNPROVED, TOMBSTONE = "fast", "unparsed", "unproved", "tombstone"


def record(kind: str) -> tuple[bytes, bytes | None]:
    row = {column.source: None for column in TABLE.columns} | {"id": 1}
    source = {"lsn": 5, "txId": 1, "ts_us": 1, "sequence": '["1","5"]'}
    event = {"op": "c", "before": None, "after": row, "source": source, naming.EPOCH: "1"}
    key = {UNPARSED: b"no JSON", UNPROVED: b'{"id":2}'}.get(kind, b'{"id":1}')
    return key, None if kind == TOMBSTONE else json.dumps(event).encode()


def refusals(kinds: list[str]) -> tuple[list[tuple[int, str | None]], int]:
    """Return offset and code of the refusal of each row, and the number of chunks."""
    records = [record(kind) for kind in kinds]
    keys, values = [key for key, _ in records], [value for _, value in records]
    rows = BlockDecoder(TABLE, plan_with(TABLE)).decode(values, keys, 0, np.arange(len(kinds)))
    codes = [text and text.split(":")[0] for text in rows[REFUSAL].to_pylist()]
    return list(zip(rows[naming.OFFSET].to_pylist(), codes, strict=True)), rows[REFUSAL].num_chunks


@given(st.lists(st.sampled_from([FAST, UNPARSED, UNPROVED, TOMBSTONE]), min_size=1, max_size=12))
def test_every_row_is_at_the_place_of_its_record(kinds: list[str]) -> None:
    code = {FAST: None, UNPARSED: "UNREADABLE_KEY", UNPROVED: "KEY_MISMATCH"}
    expected = [(n, code[kind]) for n, kind in enumerate(kinds) if kind != TOMBSTONE]
    assert refusals(kinds)[0] == expected


def test_a_block_is_not_divided_by_slow_rows_that_follow_each_other() -> None:
    assert refusals([UNPARSED] * 50)[1] <= 2
    assert refusals([FAST, *[UNPROVED] * 50, FAST])[1] <= 4
