"""Everybody who can be measured, by name."""

from __future__ import annotations

from benchmarks.contender import Contender
from benchmarks.ours import Ours
from benchmarks.peers.delta import Delta
from benchmarks.peers.hudi import Hudi
from benchmarks.peers.plain_merge import PlainMerge
from benchmarks.peers.samples_way import SamplesWay

OURS = "ours"
CONTENDERS: dict[str, type[Contender]] = {
    OURS: Ours,
    "samples_way": SamplesWay,
    "plain_merge": PlainMerge,
    "delta": Delta,
    "hudi": Hudi,
}
