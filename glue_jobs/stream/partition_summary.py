"""Summary of the decoded events of one Kafka partition, computed where they are decoded.

The driver decides by it how to process them: the rows themselves stay in the task. A partition's
events may be decoded in several blocks, files and tasks, whose summaries are combined.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdclake import naming
from cdclake.debezium.refusals import (
    BROKEN_RULE,
    KEY_MISMATCH,
    NULL_KEY,
    OVERSIZED_RECORD,
    SCHEMA_REFUSED,
)
from cdclake.jobs.stream.changelog_columns import ABSENT, MISFITS, REFUSAL, without_refused

REFUSED = "refused"
TRUNCATE = "truncate"
CARRIED_KEY_CHANGE = "carried_key_change"  # a creation with unavailable values: a key changed
COMPLETE_ROW = "complete_row"  # has a row, and is not refused except for its key or by a rule
LACKING_ROW = "lacking_row"  # the same, without a declared column
MISFIT = "misfit"  # has a value that does not fit the declared type

_ROW_OPERATIONS = pa.array(["c", "u", "r"])
_LOOKED_AT = (
    naming.OP, naming.POSITION, naming.COMMITTED_AT, naming.OFFSET, naming.UNAVAILABLE,
    naming.EPOCH, naming.LSN, naming.PREV_COMMIT_LSN, naming.PHASE, REFUSAL, ABSENT, MISFITS,
)  # fmt: skip
_OF_ROWS = (naming.POSITION, naming.EPOCH, naming.PREV_COMMIT_LSN, ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSummary:
    """Statistics of one Kafka partition's share; LSNs are None without accepted events."""

    partition: int
    first_offset: int
    next_offset: int
    accepted: int
    withheld: int  # refused by a rule of the file
    has_repeats: bool  # within one block
    overlaps: bool  # an LSN may be in two blocks, whose events were not compared
    lowest_lsn: int | None
    highest_lsn: int | None
    lowest_deleted_lsn: int | None
    epoch: int | None
    lowest_epoch: int | None
    snapshot_read_at: int | None  # microseconds; one for all rows of a table's snapshot
    snapshot_read_until: int | None
    lowest_row_epoch: int | None  # of events with a row; next: their lowest previous commit
    lowest_row_prev: int | None
    lowest_row_position: str | None
    flags: frozenset[str]  # REFUSED and those after it that some event has
    unavailable: frozenset[str]  # columns with a value that was not sent
    absent: frozenset[str]  # source names of columns that some event with a row lacks
    oversized: str | None = None  # reason of an event that was too large for Kafka
    schema_refused: str | None = None  # reason of an event whose schema the registry refused

    def has(self, sign: str) -> bool:
        """Return whether some event has the flag."""
        return sign in self.flags

    def to_json(self) -> str:
        """Return the summary as one line of JSON."""
        values = asdict(self).items()
        return json.dumps({k: sorted(v) if isinstance(v, frozenset) else v for k, v in values})

    @staticmethod
    def from_json(text: str) -> PartitionSummary:
        """Parse a summary that `to_json` wrote."""
        raw: dict[str, Any] = json.loads(text)
        sets = {name: frozenset(raw[name]) for name in _UNIONS}
        return PartitionSummary(**{**raw, **sets})


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedReasons:
    """Reasons of refused events that may stop a table at once; None: there was none."""

    oversized: str | None = None  # too large for Kafka
    schema: str | None = None  # the registry refused its schema

    @staticmethod
    def of(parts: Sequence[PartitionSummary]) -> RefusedReasons:
        """Return the reasons in the parts of a batch."""
        return RefusedReasons(
            oversized=max((part.oversized for part in parts if part.oversized), default=None),
            schema=max(
                (part.schema_refused for part in parts if part.schema_refused), default=None
            ),
        )


def summarize(rows: pa.Table, partition: int, identity: Sequence[str]) -> PartitionSummary:
    """Summarize decoded events of one partition: changelog columns, REFUSAL, ABSENT and MISFITS.

    There must be at least one event. `identity` are the columns that identify an event.
    """
    # Only these columns are copied, and only if some events are refused.
    rows = rows.select([*_LOOKED_AT, *(name for name in identity if name not in _LOOKED_AT)])
    kept = without_refused(rows)
    with_row = rows.select(_OF_ROWS).filter(_has_row(rows))
    lowest, highest = _range(kept[naming.LSN])
    lowest_epoch, epoch = _range(kept[naming.EPOCH])
    read_at, read_until = _range(_micros(_of_operation(kept, "r", naming.COMMITTED_AT)))
    first, last = _range(rows[naming.OFFSET])
    return PartitionSummary(
        partition=partition,
        first_offset=first,
        next_offset=last + 1,
        accepted=kept.num_rows,
        withheld=_count(_has_code(rows[REFUSAL], BROKEN_RULE)),
        has_repeats=_has_repeats(kept, identity),
        overlaps=False,
        lowest_lsn=lowest,
        highest_lsn=highest,
        lowest_deleted_lsn=_lowest(_of_operation(kept, "d", naming.LSN)),
        epoch=epoch,
        lowest_epoch=lowest_epoch,
        snapshot_read_at=read_at,
        snapshot_read_until=read_until,
        lowest_row_epoch=_lowest(with_row[naming.EPOCH]),
        lowest_row_prev=_lowest(with_row[naming.PREV_COMMIT_LSN]),
        lowest_row_position=_lowest(with_row[naming.POSITION]),
        flags=_flags(rows, kept, with_row),
        unavailable=_names(kept[naming.UNAVAILABLE]),
        absent=_names(with_row[ABSENT]),
        oversized=_reason(rows[REFUSAL], OVERSIZED_RECORD),
        schema_refused=_reason(rows[REFUSAL], SCHEMA_REFUSED),
    )


def _has_row(rows: pa.Table) -> pa.ChunkedArray:
    """Match events with a row that are accepted, or refused only for their key or by a rule.

    A dropped key column makes every key wrong, and a dropped column may break a rule in every row.
    """
    is_row = pc.is_in(rows[naming.OP], value_set=_ROW_OPERATIONS)
    refusals = rows[REFUSAL]
    if refusals.null_count == rows.num_rows:
        return is_row
    counts = pc.is_null(refusals)
    for reason in (NULL_KEY, KEY_MISMATCH, BROKEN_RULE):
        counts = pc.or_(counts, _has_code(refusals, reason.split(":")[0]))
    return pc.and_(counts, is_row)


def _flags(rows: pa.Table, kept: pa.Table, with_row: pa.Table) -> frozenset[str]:
    is_carried = pc.is_valid(_of_operation(kept, "c", naming.UNAVAILABLE))
    lacks = pc.is_valid(with_row[ABSENT])
    found = {
        REFUSED: kept.num_rows < rows.num_rows,
        TRUNCATE: _any(pc.equal(kept[naming.OP], "t")),
        CARRIED_KEY_CHANGE: _any(is_carried),
        COMPLETE_ROW: _any(pc.invert(lacks)),
        LACKING_ROW: _any(lacks),
        MISFIT: _any(pc.is_valid(rows[MISFITS])),
    }
    return frozenset(name for name, is_so in found.items() if is_so)


def _of_operation(rows: pa.Table, op: str, column: str) -> pa.ChunkedArray:
    return rows[column].filter(pc.equal(rows[naming.OP], op))


def _count(condition: pa.ChunkedArray) -> int:
    return pc.sum(condition).as_py() or 0


def _any(condition: pa.ChunkedArray) -> bool:
    return bool(pc.any(condition).as_py())


def _range(values: pa.ChunkedArray) -> tuple[Any, Any]:
    found = pc.min_max(values).as_py()
    return found["min"], found["max"]


def _lowest(values: pa.ChunkedArray) -> Any:
    return pc.min(values).as_py()


def _micros(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return times.cast(pa.int64())


def _has_repeats(kept: pa.Table, identity: Sequence[str]) -> bool:
    """Return whether an event occurs twice; nearly all blocks show by their LSNs that none does."""
    lsns = kept[naming.LSN].to_numpy()
    if (np.diff(lsns) > 0).all() or len(np.unique(lsns)) == kept.num_rows:
        return False
    distinct = kept.group_by(list(identity), use_threads=False).aggregate([])
    return bool(distinct.num_rows < kept.num_rows)


def _names(lists: pa.ChunkedArray) -> frozenset[str]:
    if lists.null_count == len(lists):
        return frozenset()
    return frozenset(pc.unique(pc.list_flatten(lists)).to_pylist())


def _reason(refusals: pa.ChunkedArray, code: str) -> str | None:
    return max(refusals.filter(_has_code(refusals, code)).to_pylist(), default=None)


def _has_code(refusals: pa.ChunkedArray, code: str) -> pa.ChunkedArray:
    return pc.fill_null(pc.starts_with(refusals, code), False)


def combined(summaries: Iterable[PartitionSummary]) -> list[PartitionSummary]:
    """Combine the summaries of each partition's blocks into one, sorted by partition."""
    found: dict[int, PartitionSummary] = {}
    for summary in summaries:
        known = found.get(summary.partition)
        found[summary.partition] = summary if known is None else _combine(known, summary)
    return [found[partition] for partition in sorted(found)]


_LOWEST = (
    "first_offset", "lowest_lsn", "lowest_deleted_lsn", "lowest_epoch", "snapshot_read_at",
    "lowest_row_epoch", "lowest_row_prev", "lowest_row_position",
)  # fmt: skip
_GREATEST = (
    "next_offset",
    "highest_lsn",
    "epoch",
    "snapshot_read_until",
    "oversized",
    "schema_refused",
)
_UNIONS = ("flags", "unavailable", "absent")


def _combine(one: PartitionSummary, other: PartitionSummary) -> PartitionSummary:
    both = asdict(one), asdict(other)
    return PartitionSummary(
        partition=one.partition,
        accepted=one.accepted + other.accepted,
        withheld=one.withheld + other.withheld,
        has_repeats=one.has_repeats or other.has_repeats,
        overlaps=one.overlaps or other.overlaps or _share_lsns(one, other),
        **{name: _known(both, name, min) for name in _LOWEST},
        **{name: _known(both, name, max) for name in _GREATEST},
        **{name: both[0][name] | both[1][name] for name in _UNIONS},
    )


def _known(both: Sequence[Mapping[str, Any]], name: str, choose: Any) -> Any:
    return choose((v for values in both if (v := values[name]) is not None), default=None)


def _share_lsns(one: PartitionSummary, other: PartitionSummary) -> bool:
    """Return whether an LSN may be in both blocks, as in those of an initial snapshot."""
    if one.lowest_lsn is None or other.lowest_lsn is None:
        return False
    assert one.highest_lsn is not None and other.highest_lsn is not None
    return one.lowest_lsn <= other.highest_lsn and other.lowest_lsn <= one.highest_lsn
