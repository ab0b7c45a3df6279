"""Summaries of decoded events, by block and combined."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.jobs.stream.changelog_columns import ABSENT, MISFITS, REFUSAL
from cdclake.jobs.stream.partition_summary import (
    CARRIED_KEY_CHANGE,
    COMPLETE_ROW,
    LACKING_ROW,
    MISFIT,
    REFUSED,
    TRUNCATE,
    PartitionSummary,
    combined,
    summarize,
)

IDENTITY = [naming.EPOCH, naming.PHASE, naming.LSN, naming.OP, "id"]
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        naming.OP: pa.string(),
        naming.POSITION: pa.string(),
        naming.COMMITTED_AT: pa.timestamp("us", "UTC"),
        naming.OFFSET: pa.int64(),
        naming.UNAVAILABLE: pa.list_(pa.string()),
        naming.EPOCH: pa.int32(),
        naming.LSN: pa.int64(),
        naming.PREV_COMMIT_LSN: pa.int64(),
        naming.PHASE: pa.int32(),
        REFUSAL: pa.string(),
        ABSENT: pa.list_(pa.string()),
        MISFITS: pa.list_(pa.string()),
    }
)


def event(offset: int, op: str = "c", /, **how: Any) -> dict[str, Any]:
    """A decoded event of row `offset` at LSN 100 + offset."""
    lsn = how.pop("lsn", 100 + offset)
    return {
        "id": offset, naming.OP: op, naming.POSITION: f"p{lsn}", naming.COMMITTED_AT: 7,
        naming.OFFSET: offset, naming.UNAVAILABLE: None, naming.EPOCH: 1, naming.LSN: lsn,
        naming.PREV_COMMIT_LSN: lsn - 1, naming.PHASE: 1, REFUSAL: None, ABSENT: None,
        MISFITS: None, **how,
    }  # fmt: skip


def summary(*events: dict[str, Any]) -> PartitionSummary:
    return summarize(pa.Table.from_pylist(list(events), SCHEMA), 3, IDENTITY)


def test_a_summary_has_the_ranges_of_accepted_events() -> None:
    refused = event(9, "d", **{REFUSAL: refusals.NO_EPOCH, naming.EPOCH: None})
    found = summary(event(4), event(5, "d"), event(6, "r", **{naming.COMMITTED_AT: 11}), refused)
    assert (found.partition, found.first_offset, found.next_offset) == (3, 4, 10)
    assert (found.accepted, found.lowest_lsn, found.highest_lsn) == (3, 104, 106)
    assert (found.lowest_deleted_lsn, found.epoch, found.lowest_epoch) == (105, 1, 1)
    assert (found.snapshot_read_at, found.snapshot_read_until) == (11, 11)
    assert (found.lowest_row_epoch, found.lowest_row_prev) == (1, 103)
    assert found.lowest_row_position == "p104"
    assert found.flags == {REFUSED, COMPLETE_ROW}


def test_a_summary_of_refused_events_has_no_lsn() -> None:
    found = summary(event(4, **{REFUSAL: refusals.UNREADABLE_VALUE, MISFITS: ["id"]}))
    assert (found.accepted, found.lowest_lsn, found.epoch) == (0, None, None)
    assert found.lowest_row_position is None
    assert found.flags == {REFUSED, MISFIT}


@pytest.mark.parametrize("reason", [refusals.NULL_KEY, refusals.KEY_MISMATCH])
def test_an_event_refused_for_its_key_still_shows_its_columns(reason: str) -> None:
    found = summary(event(4, **{REFUSAL: reason, ABSENT: ["id"]}))
    assert found.flags == {REFUSED, LACKING_ROW}
    assert found.absent == {"id"}
    assert found.lowest_row_position == "p104"


def test_a_summary_names_what_was_not_sent() -> None:
    key_change = event(4, **{naming.UNAVAILABLE: ["big"]})
    found = summary(key_change, event(5, "u", **{naming.UNAVAILABLE: ["v", "big"]}), event(6, "t"))
    assert found.unavailable == {"big", "v"}
    assert found.flags == {CARRIED_KEY_CHANGE, COMPLETE_ROW, TRUNCATE}


def test_the_last_oversized_reason_is_kept() -> None:
    reason = f"{refusals.OVERSIZED_RECORD}: 20 MB of row 7"
    assert summary(event(4), event(5, **{REFUSAL: reason})).oversized == reason
    assert summary(event(4)).oversized is None


def test_repeats_are_found_by_identity_and_not_by_lsn() -> None:
    snapshot = {"lsn": 50, naming.PHASE: 0}
    assert not summary(event(4, "r", **snapshot), event(5, "r", **snapshot)).has_repeats
    assert summary(event(4, "r", **snapshot), event(5, "r", id=4, **snapshot)).has_repeats
    assert not summary(event(4, "d"), event(5, lsn=104, id=4)).has_repeats


def test_a_refused_copy_is_no_repeat() -> None:
    copy = event(5, id=4, lsn=104, **{REFUSAL: refusals.NO_ROW})
    assert not summary(event(4), copy).has_repeats


def test_blocks_of_a_partition_are_combined() -> None:
    early, late = summary(event(4)), summary(event(8, "d"), event(9, "t"))
    [found] = combined([late, early])
    assert (found.first_offset, found.next_offset, found.accepted) == (4, 10, 3)
    assert (found.lowest_lsn, found.highest_lsn, found.lowest_deleted_lsn) == (104, 109, 108)
    assert found.flags == {COMPLETE_ROW, TRUNCATE}
    assert not found.overlaps
    other = replace(early, partition=1)
    assert [part.partition for part in combined([early, other])] == [1, 3]


def test_blocks_with_a_common_lsn_overlap() -> None:
    [found] = combined([summary(event(4), event(6)), summary(event(5))])
    assert found.overlaps and not found.has_repeats
    refused = summary(event(5, **{REFUSAL: refusals.NO_ROW}))
    assert not combined([summary(event(4)), refused])[0].overlaps


def test_a_summary_survives_json() -> None:
    found = summary(event(4, "u", **{naming.UNAVAILABLE: ["v"]}), event(5, **{ABSENT: ["id"]}))
    assert PartitionSummary.from_json(found.to_json()) == found
