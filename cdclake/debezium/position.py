"""Position of an event in the total order that makes everything in the lake converge.

A position is text that sorts lexicographically: `epoch.prev_commit_lsn.phase.lsn.offset`, in
hexadecimal digits of fixed width. `prev_commit_lsn` is the commit LSN of the transaction
before this one, so it grows along the stream although LSNs of interleaved transactions do not;
phase 0 puts a snapshot's row before the transactions that were open over the snapshot
(docs/architecture.md, "Position").
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_EPOCH = 1  # that of a lake's first stream, and of polls before it
EPOCH_DIGITS = 8
LSN_DIGITS = 16

SNAPSHOT_PHASE = 0
STREAM_PHASE = 1
POLL_PHASE = 2  # a row that a query has read; above every change that was committed before

# This prefix is comparable between partitions; the offset after it is not.
HISTORY_LENGTH = EPOCH_DIGITS + 1 + LSN_DIGITS + 1 + 1 + 1 + LSN_DIGITS


def position_text(epoch: int, prev_commit_lsn: int, phase: int, lsn: int, offset: int) -> str:
    """Return the text of a position; faster than `str(Position(...))` for each event."""
    return (
        f"{epoch:0{EPOCH_DIGITS}x}.{prev_commit_lsn:0{LSN_DIGITS}x}.{phase}"
        f".{lsn:0{LSN_DIGITS}x}.{offset:0{LSN_DIGITS}x}"
    )


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Position of one event; compares field by field, as its text does."""

    epoch: int
    prev_commit_lsn: int
    phase: int
    lsn: int
    offset: int

    def __str__(self) -> str:
        """Return the text that is stored as `cdc_position`.

        >>> str(Position(1, 0xAB, 1, 0xCD, 7))
        '00000001.00000000000000ab.1.00000000000000cd.0000000000000007'
        """
        return position_text(self.epoch, self.prev_commit_lsn, self.phase, self.lsn, self.offset)

    @staticmethod
    def parse(text: str) -> Position:
        """Parse a position; raise ValueError if the text is invalid."""
        epoch, prev, phase, lsn, offset = text.split(".")
        return Position(int(epoch, 16), int(prev, 16), int(phase), int(lsn, 16), int(offset, 16))


def history_part(position: str) -> str:
    """Return the position without its offset, which is compared with a truncate's floor."""
    return position[:HISTORY_LENGTH]


def epoch_start(epoch: int) -> Position:
    """Return the position before every event of an epoch; its full snapshot replaces all below."""
    return snapshot_start(epoch, 0)


def snapshot_start(epoch: int, lsn: int) -> Position:
    """Return the position of the first row of an epoch's snapshot that was taken at this LSN.

    A connector that restarts before its snapshot is complete takes another one, whose rows are all
    at a greater LSN. Rows below it were read by the earlier one only, so the source lacks them.
    """
    return Position(epoch, 0, SNAPSHOT_PHASE, lsn, 0)


def reached(epoch: int, lsn: int) -> Position:
    """Return the position of the source when its WAL has reached this LSN.

    The transactions of all events above it commit later. Conversely, the first transaction that
    commits later is below it, because its previous commit is; all others are above it.
    """
    return Position(epoch, lsn, STREAM_PHASE, lsn, 0)


def is_sweep(floor: str) -> bool:
    """Return whether a floor is the start of a snapshot; a TRUNCATE of the source is streamed.

    >>> is_sweep(history_part(str(epoch_start(2)))), is_sweep(history_part(str(just_after(
    ...     "00000001.00000000000000ab.1.00000000000000cd.0000000000000007"))))
    (True, False)
    >>> is_sweep("")
    False
    """
    return bool(floor) and floor.split(".")[2] == str(SNAPSHOT_PHASE)


def just_after(position: str) -> Position:
    """Return the first position above an event, below every later transaction.

    A snapshot that is taken later is above it, too: its rows have a later previous commit.

    >>> polled = str(Position(1, 0xAB, POLL_PHASE, 0xAB, 7))
    >>> polled < str(just_after(polled)) < str(Position(1, 0xAC, SNAPSHOT_PHASE, 0xAC, 0))
    True
    """
    at = Position.parse(position)
    return Position(at.epoch, at.prev_commit_lsn, max(at.phase, STREAM_PHASE), at.lsn + 1, 0)
