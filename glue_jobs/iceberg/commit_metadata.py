"""Stamps: what a commit covers, written into its snapshot's summary by the commit itself.

A replayed batch finds its stamp and skips what is done; a lost checkpoint is rebuilt from them
(correctness 6.5). Plain data, without Spark, so that the CLI reads them too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from cdclake.iceberg.views import AppliedThrough

_ABOVE_ALL = "~"  # no position: of a state whose first stamps did not name its newest one yet


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesStamp:
    """What a log holds: per Kafka partition the next offset, and marks to find repeats by."""

    offsets: Mapping[int, int] = field(default_factory=dict)
    ingested_through: int = 0  # microseconds since 1970; grows with every commit
    epoch: int = 0
    lsn_marks: Mapping[int, int] = field(default_factory=dict)  # highest LSN seen, by partition
    snapshot_read_at: int = 0  # `source.ts` of the snapshot whose rows stand at the mark

    def to_json(self) -> str:
        """The stamp as one line."""
        return json.dumps(
            {
                "offsets": self.offsets,
                "ingested_through": self.ingested_through,
                "epoch": self.epoch,
                "lsn_marks": self.lsn_marks,
                "snapshot_read_at": self.snapshot_read_at,
            },
            sort_keys=True,
        )

    @staticmethod
    def from_json(text: str) -> ChangesStamp:
        """The stamp that `to_json` wrote."""
        raw = json.loads(text)
        return ChangesStamp(
            offsets={int(p): n for p, n in raw["offsets"].items()},
            ingested_through=raw["ingested_through"],
            epoch=raw["epoch"],
            lsn_marks={int(p): n for p, n in raw["lsn_marks"].items()},
            snapshot_read_at=raw["snapshot_read_at"],
        )


def moment_after(stamp: ChangesStamp) -> int:
    """Now, but in any case after everything that the log has ingested."""
    return max(time.time_ns() // 1000, stamp.ingested_through + 1)


def state_stamp_json(applied: AppliedThrough) -> str:
    """The stamp of a commit to `<t>`."""
    return json.dumps(asdict(applied), sort_keys=True)


def state_stamp(text: str) -> AppliedThrough:
    """What the stamp of `<t>` says is applied."""
    raw = json.loads(text)
    newest = raw.get("newest", _ABOVE_ALL)
    carried, sequence = tuple(raw["carried"]), raw.get("sequence", 0)
    return AppliedThrough(raw["ingested"], raw["floor"], carried, newest, sequence)
