"""Batches applied to a state as it is made: their figures, and a check of the rows in the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from benchmarks.comparison import Arena
from benchmarks.dataset import DataSet
from benchmarks.expected import differences
from benchmarks.metering import metered
from benchmarks.ours import Ours
from benchmarks.requests import requests_so_far
from benchmarks.storage import Storage


def checked_answer(
    module: str,
    data: DataSet,
    work: Path,
    storage: Callable[[Path], AbstractContextManager[Storage]],
    **given: Any,
) -> Any:
    """Return the module's answer to a question about the data.

    It writes the live rows to the folder `live_rows`; RuntimeError if they are wrong.
    """
    with Arena(work, storage).place("scale") as place:
        live_rows = place.folder / "live"
        question = {
            "base": str(data.base), "batches": [str(file) for file in data.batch_files],
            "live_rows": str(live_rows), **given,
        }  # fmt: skip
        answer = place.ask(module, question)
        wrong = differences(data.base, data.batch_files, live_rows)
    if wrong is not None:
        raise RuntimeError(f"the state is wrong: {wrong}")
    return answer


def apply_batch(ours: Ours, changes: DataFrame) -> Mapping[str, Any]:
    """Apply changes that are in memory, and return the figures."""
    rows = changes.cache()
    rows.count()
    figures = figures_of(lambda: ours.apply(rows))
    rows.unpersist()
    return figures


def figures_of(act: Callable[[], object]) -> Mapping[str, Any]:
    """Return seconds, CPU seconds and requests of what the function does."""
    before = requests_so_far()
    with metered() as meter:
        act()
    requests = requests_so_far() - before
    return {
        "seconds": round(meter.seconds, 3),
        "cpu_seconds": round(meter.cpu_seconds, 3),
        "s3_requests": requests.s3,
        "glue_requests": requests.glue,
    }
