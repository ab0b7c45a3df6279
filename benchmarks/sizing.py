"""Sizes of the stream's job by the fitted formula, and how far the formula is from S3 and Glue."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.changelog import Fit, fitted
from cdclake.jobs.stream.streaming_query import MAX_OFFSETS_PER_CORE

# Tables, and changes a second.
LAKES = ((20, 1_000), (100, 5_000), (300, 500))
TRIGGERS_S = (10, 60)
# The smallest of Glue's worker types, and its vCPUs (AWS Glue developer guide, worker types).
WORKER, WORKER_CORES = "G.025X", 2
MAX_BATCH_SHARE = 0.6  # of the trigger's seconds
MAX_CORE_SHARE = 0.5  # of the workers' cores: the load is not even
_FAR_OF = {"N1": "N7", "N1a": "N7a"}
_FOLDER = (
    "The storage of these batches is a folder: the formula has no S3 client and no Glue client in "
    "it, and the tables have no earlier commits than those of the batches.{far}\n"
)
_SIZING = (
    "Sizes of the stream's job by the formula, computed and not measured: nothing has run on AWS, "
    "a core here is not Glue's, and the formula is of nine columns and of at most {tables:,} "
    "tables and {changes:,} changes. Cores busy: with the changelogs only, and with the states in "
    "every batch. States that take longer than a twentieth of the trigger are not updated in every "
    "batch, so a lake is between the two. A batch may need at most {batch:.0%} of the trigger's "
    "seconds in CPU seconds, since N8's took about as long as its CPU seconds. If only its "
    "changelogs fit, the states come later; if they do not either, the trigger has to be longer. "
    "*a* and *b* are work of the driver, which a batch of that size keeps busy to less than one of "
    "the two cores of the smallest worker type. *c* is work of the other workers: their cores are "
    "busy to at most {core:.0%}, and take at most {records:,} records of a batch each.\n"
)
_HEADS = (
    "tables", "changes a second", "trigger, s", "CPU s of a batch", "cores busy", "stream's job",
)  # fmt: skip


def sizing(costs: Mapping[str, Any]) -> Iterator[str]:
    """Yield how far away storage changes the formula, then a table of sizes."""
    fits = {name: fitted(costs[name]["runs"]) for name in _FAR_OF if name in costs}
    if not fits:
        return
    far = "".join(_far(name, fit, costs) for name, fit in fits.items())
    yield _FOLDER.format(far=far)
    if len(fits) < len(_FAR_OF):
        return
    most = {of: max(run[of] for run in costs["N1"]["runs"]) for of in ("tables", "changes")}
    shares = {"core": MAX_CORE_SHARE, "batch": MAX_BATCH_SHARE}
    yield _SIZING.format(records=MAX_OFFSETS_PER_CORE, **shares, **most)
    rows = [_row(fits, *lake, trigger) for lake in LAKES for trigger in TRIGGERS_S]
    lines = [_HEADS, ("---",) * len(_HEADS), *rows]
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def job_of(fits: Mapping[str, Fit], tables: int, changes: int, trigger_s: int) -> str:
    """Return number and type of the workers for so many changes in one trigger interval.

    `fits` has the formulas of N1 and N1a. One worker more than the tasks need is the driver.
    """
    fitting = [
        name for name in _FAR_OF if fits[name].of(tables, changes) <= MAX_BATCH_SHARE * trigger_s
    ]
    if not fitting:
        return "a longer trigger"
    busy = fits["N1"].change * changes / trigger_s / MAX_CORE_SHARE
    cores = max(busy, changes / MAX_OFFSETS_PER_CORE, 1)
    later = "" if "N1" in fitting else ", states later"
    return f"{1 + math.ceil(cores / WORKER_CORES)} x {WORKER}{later}"


def _far(name: str, fit: Fit, costs: Mapping[str, Any]) -> str:
    far = costs.get(_FAR_OF[name])
    if far is None:
        return ""
    [run] = far["runs"]
    tables, changes = run["tables"], run["changes"]
    return (
        f" {_FAR_OF[name]}: with S3 30 ms and Glue 80 ms away, a batch of {tables:,} tables and "
        f"{changes:,} changes takes {statistics.median(run['cpu_seconds']):.2f} CPU seconds, where "
        f"the formula of {name} gives {fit.of(tables, changes):.2f}."
    )


def _row(fits: Mapping[str, Fit], tables: int, a_second: int, trigger_s: int) -> tuple[str, ...]:
    changes = a_second * trigger_s
    spent = [fits[name].of(tables, changes) for name in ("N1a", "N1")]
    return (
        f"{tables:,}",
        f"{a_second:,}",
        f"{trigger_s}",
        " to ".join(f"{seconds:.1f}" for seconds in spent),
        " to ".join(f"{seconds / trigger_s:.2f}" for seconds in spent),
        job_of(fits, tables, changes, trigger_s),
    )
