"""How large a measurement is: what counts, what fits into some minutes, what only shows it runs."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.history import Keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Rows of the table, changes a batch, batches with their warm-up, and how keys are drawn."""

    rows: int
    changes: int
    batches: int
    keys: tuple[Keys, ...]
    events: int  # in a batch that is only decoded or appended
    log_files: int  # in a log that is already long
    history: int  # batches before a table is read
    measures: tuple[str, ...]


EVERY = ("P1", "P2", "P3", "P4", "P7", "P8", "P9")
SIZES = {
    "full": Size(
        rows=10_000_000,
        changes=20_000,
        batches=7,
        keys=("zipf", "uniform"),
        events=200_000,
        log_files=10_000,
        history=100,
        measures=EVERY,
    ),
    "short": Size(
        rows=1_000_000,
        changes=20_000,
        batches=5,
        keys=("zipf",),
        events=100_000,
        log_files=1_000,
        history=20,
        measures=("P1", "P3", "P4"),
    ),
    "tiny": Size(
        rows=50_000,
        changes=2_000,
        batches=3,
        keys=("zipf",),
        events=2_000,
        log_files=200,
        history=3,
        measures=EVERY,
    ),
}
