"""P1, P2 and P9: changes from memory into the table, beside every peer, near and far."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from benchmarks.comparison import Arena
from benchmarks.contenders import OURS
from benchmarks.dataset import DataSet
from benchmarks.history import Keys
from benchmarks.results import Bound, Measure, Run, median_of
from benchmarks.sizes import Size
from benchmarks.storage import Storage, far_away, in_folder

TARGETS = {
    "samples_way": Bound(">=", 25),
    "plain_merge": Bound(">=", 5),
    "hudi": Bound(">=", 1.5),
    "delta": Bound(">=", 5),
}


def measure_apply(size: Size, work: Path) -> Measure:
    """P1: every contender, with Zipf keys and with uniform ones."""
    runs = _runs([OURS, *TARGETS], size, work, in_folder)
    return _beside_peers(runs, TARGETS)


def measure_growth(size: Size, work: Path) -> Measure:
    """P2: ours on the table of P1 beside ours on one of a tenth of its rows."""
    small = f"{OURS}, {size.rows // 10:,} rows"
    tenth = _runs([OURS], replace(size, rows=size.rows // 10), work, in_folder)
    whole = _runs([OURS], size, work, in_folder)
    return Measure(
        ours=median_of(whole, OURS),
        peers={small: median_of(tenth, OURS)},
        targets={small: Bound("<=", 1.3)},
        runs=[*tenth, *whole],
    )


def measure_far(size: Size, work: Path) -> Measure:
    """P9: as P1, with S3 and Glue some way off, for those who have tables there."""
    targets = {"plain_merge": Bound(">=", 4)}
    return _beside_peers(_runs([OURS, *targets], size, work, far_away), targets)


def changes(size: Size, keys: Keys, work: Path) -> DataSet:
    """Batches of inserts, updates and deletes."""
    return DataSet(
        folder=work / "data",
        rows=size.rows,
        changes=size.changes,
        batches=size.batches,
        warm_up=size.warm_up,
        keys=keys,
    )


def _runs(
    contenders: list[str],
    size: Size,
    work: Path,
    storage: Callable[[Path], AbstractContextManager[Storage]],
) -> list[Run]:
    arena = Arena(work, storage)
    runs = []
    for keys in size.keys:
        data = changes(size, keys, work).make()
        runs += [arena.run(contender, data) for contender in contenders]
    return runs


def _beside_peers(runs: list[Run], targets: dict[str, Bound]) -> Measure:
    peers = {peer: median_of(runs, peer) for peer in targets}
    return Measure(ours=median_of(runs, OURS), peers=peers, targets=targets, runs=runs)
