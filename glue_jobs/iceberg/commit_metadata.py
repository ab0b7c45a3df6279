"""Stamps: the offsets and progress that a commit writes into its own snapshot summary.

A replayed batch finds its stamp and skips the work that is done; a lost checkpoint is rebuilt from
stamps (docs/architecture.md, "Stamps and the fence"). Stamps are plain data, so the CLI reads them
without Spark.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from cdclake.iceberg.views import AppliedThrough

_ABOVE_ALL = "~"  # no position, but sorts after all; for old stamps without `newest`


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesStamp:
    """Stamp of a changelog: next offsets and high-water marks by Kafka partition."""

    offsets: Mapping[int, int] = field(default_factory=dict)
    ingested_through: int = 0  # microseconds since 1970; grows with every commit
    epoch: int = 0
    lsn_marks: Mapping[int, int] = field(default_factory=dict)  # highest LSN by partition
    snapshot_read_at: int = 0  # `source.ts` of the snapshot whose rows are at the mark
    topic_id: str = ""  # Kafka's id of the topic that the offsets belong to; "": not known

    def offsets_in(self, topic_id: str) -> Mapping[int, int]:
        """Return the offsets if they may belong to this topic: none of one that is known to differ.

        >>> stamp = ChangesStamp(offsets={0: 7}, topic_id="a")
        >>> stamp.offsets_in("a"), stamp.offsets_in("b")
        ({0: 7}, {})
        """
        is_other = self.topic_id and topic_id and self.topic_id != topic_id
        return {} if is_other else self.offsets

    def to_json(self) -> str:
        """Return the stamp as one line of JSON."""
        return json.dumps(
            {
                "offsets": self.offsets,
                "ingested_through": self.ingested_through,
                "epoch": self.epoch,
                "lsn_marks": self.lsn_marks,
                "snapshot_read_at": self.snapshot_read_at,
                **({"topic_id": self.topic_id} if self.topic_id else {}),
            },
            sort_keys=True,
        )

    @staticmethod
    def from_json(text: str) -> ChangesStamp:
        """Parse a stamp that `to_json` wrote."""
        raw = json.loads(text)
        return ChangesStamp(
            offsets={int(p): n for p, n in raw["offsets"].items()},
            ingested_through=raw["ingested_through"],
            epoch=raw["epoch"],
            lsn_marks={int(p): n for p, n in raw["lsn_marks"].items()},
            snapshot_read_at=raw["snapshot_read_at"],
            topic_id=raw.get("topic_id", ""),
        )


def moment_after(stamp: ChangesStamp) -> int:
    """Return the current time, but at least one microsecond after the last ingestion."""
    return max(time.time_ns() // 1000, stamp.ingested_through + 1)


def state_stamp_json(applied: AppliedThrough) -> str:
    """Return the stamp of a commit to the state."""
    return json.dumps(asdict(applied), sort_keys=True)


def state_stamp(text: str) -> AppliedThrough:
    """Parse the stamp of a state."""
    raw = json.loads(text)
    newest = raw.get("newest", _ABOVE_ALL)
    carried, sequence = tuple(raw["carried"]), raw.get("sequence", 0)
    rebuilt = raw.get("rebuilt", "")
    return AppliedThrough(raw["ingested"], raw["floor"], carried, newest, sequence, rebuilt)
