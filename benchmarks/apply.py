"""P1, P2 and P9: changes from memory into the table, beside every peer, near and far."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.comparison import Arena
from benchmarks.contenders import OURS
from benchmarks.dataset import DataSet
from benchmarks.history import Keys
from benchmarks.results import Bound, Measure, Run, median_of
from benchmarks.sizes import Size
from benchmarks.steps import Steps
from benchmarks.storage import Storage, far_away, in_folder

TARGETS = {
    "samples_way": Bound(">=", 25),
    "plain_merge": Bound(">=", 5),
    "hudi": Bound(">=", 1.5),
    "delta": Bound(">=", 5),
}


def measure_apply(size: Size, work: Path, steps: Steps) -> Measure:
    """P1: every contender, with Zipf keys and with uniform ones."""
    runs = _runs([OURS, *TARGETS], size, work, in_folder, steps)
    return _beside_peers(runs, TARGETS)


def measure_growth(size: Size, work: Path, steps: Steps) -> Measure:
    """P2: ours on the table of P1, on a tenth of its rows, and on ten times as many.

    The keys are uniform, so each batch changes every file.
    """
    runs = [
        _runs([OURS], replace(size, rows=rows, keys=("uniform",)), work, in_folder, steps)
        for rows in (size.rows // 10, size.rows, size.rows * 10)
    ]
    small, whole, large = (median_of(of_rows, OURS) for of_rows in runs)
    tenth, tenfold = (f"{OURS}, {rows:,} rows" for rows in (size.rows // 10, size.rows * 10))
    return Measure(
        ours=whole,
        peers={tenth: small, tenfold: large},
        targets={tenth: Bound("<=", 1.3)},
        runs=list(chain(*runs)),
    )


def measure_far(size: Size, work: Path, steps: Steps) -> Measure:
    """P9: as P1, with S3 and Glue some way off, for those who have tables there."""
    targets = {"plain_merge": Bound(">=", 4)}
    return _beside_peers(_runs([OURS, *targets], size, work, far_away, steps), targets)


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
    steps: Steps,
) -> list[Run]:
    arena = Arena(work, storage)

    def taken(keys: Keys, contender: str) -> dict[str, Any]:
        return asdict(arena.run(contender, changes(size, keys, work).make()))

    return [
        Run(**steps.take(f"{contender}, {keys}, {size.rows:,}", partial(taken, keys, contender)))
        for keys in size.keys
        for contender in contenders
    ]


def _beside_peers(runs: list[Run], targets: dict[str, Bound]) -> Measure:
    peers = {peer: median_of(runs, peer) for peer in targets}
    return Measure(ours=median_of(runs, OURS), peers=peers, targets=targets, runs=runs)
