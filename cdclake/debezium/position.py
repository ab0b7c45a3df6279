"""The position of an event: the total order that everything in the lake converges by.

A position is text that compares as it is: `epoch.prev_commit_lsn.phase.lsn.offset`, in hexadecimal
digits of fixed width. `prev_commit_lsn` is the commit LSN of the transaction before this one, so it
grows along the stream although LSNs of interleaved transactions do not; phase 0 puts a snapshot's
row before the transactions that were open over the snapshot (correctness, section 0).
"""

from __future__ import annotations

from dataclasses import dataclass

EPOCH_DIGITS = 8
LSN_DIGITS = 16

SNAPSHOT_PHASE = 0
STREAM_PHASE = 1

# Up to here positions of different partitions compare; the offset behind it does not.
HISTORY_LENGTH = EPOCH_DIGITS + 1 + LSN_DIGITS + 1 + 1 + 1 + LSN_DIGITS


def position_text(epoch: int, prev_commit_lsn: int, phase: int, lsn: int, offset: int) -> str:
    """The text of the position of these parts, for those who make one for each event."""
    return (
        f"{epoch:0{EPOCH_DIGITS}x}.{prev_commit_lsn:0{LSN_DIGITS}x}.{phase}"
        f".{lsn:0{LSN_DIGITS}x}.{offset:0{LSN_DIGITS}x}"
    )


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """One event's place in the order; compares field by field, as its text does."""

    epoch: int
    prev_commit_lsn: int
    phase: int
    lsn: int
    offset: int

    def __str__(self) -> str:
        """The text stored as `cdc_position`.

        >>> str(Position(1, 0xAB, 1, 0xCD, 7))
        '00000001.00000000000000ab.1.00000000000000cd.0000000000000007'
        """
        return position_text(self.epoch, self.prev_commit_lsn, self.phase, self.lsn, self.offset)

    @staticmethod
    def parse(text: str) -> Position:
        """The position whose text this is; ValueError if it is none."""
        epoch, prev, phase, lsn, offset = text.split(".")
        return Position(int(epoch, 16), int(prev, 16), int(phase), int(lsn, 16), int(offset, 16))


def history_part(position: str) -> str:
    """The position without its offset: what a truncate's floor compares with."""
    return position[:HISTORY_LENGTH]


def epoch_start(epoch: int) -> Position:
    """The place before every event of an epoch: what a full snapshot of it replaces lies below."""
    return Position(epoch, 0, SNAPSHOT_PHASE, 0, 0)


def just_after(position: str) -> Position:
    """The first place above an event in its own transaction, below every later transaction."""
    at = Position.parse(position)
    return Position(at.epoch, at.prev_commit_lsn, STREAM_PHASE, at.lsn + 1, 0)
