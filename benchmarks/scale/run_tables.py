"""The scale measures on the page: titles, how each is measured, and a table of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

SCALE_TITLES = {
    "N8a": "The stream on four executors",
    "N8b": "A state of thousands of data files",
    "N8c": "A backlog of one table",
    "N8d": "A table of 400 columns",
    "N8e": "Tables with many earlier commits",
}
_WORDS = {
    "N8a": (
        "Batches of twenty tables, and of one, on Spark's `local-cluster`: four executors with one "
        "core each, all on this machine, so seconds do not count. The CPU of tasks is that of "
        "Java's threads of tasks and of their Python workers, after the warm-up. Bytes between "
        "executors are those that tasks fetch from each other; a broadcast comes from the driver "
        "or from another executor. The changelogs' job has a task for each core; the states' has "
        "one for each core or table, whichever is less."
    ),
    "N8b": (
        "The same rows in few files and in many, then batches of updates and deletes of keys all "
        "over the table, compaction, and one more batch. The first batch makes the index of every "
        "file. Tables are in the local S3 and Glue, which answer without a delay; their own CPU "
        "does not count, but they share the machine."
    ),
    "N8c": (
        "From the first batch to the last of a backlog of one table, in batches of the size that "
        "the product has by default. Java compiles during the first ones."
    ),
    "N8d": (
        "Batches of few and of many changes, with the states, of a table of nine columns and of "
        "one of 400: integers, texts, decimals, timestamps and booleans in turn. The cost of a "
        "change follows from their difference, and that of a value is a column's share of it."
    ),
    "N8e": (
        "Batches into a changelog and a state with so many earlier commits, two minutes apart: "
        "720 are a day's, 43,200 those of two months. With all snapshots kept, and after the "
        "stream's own thinning, which runs by default. Bytes and snapshots are of both tables "
        "together; each commit writes its table's metadata again."
    ),
}


def run_tables(costs: Mapping[str, Any]) -> Iterator[str]:
    """Yield how each scale measure is made, and its runs."""
    for name, cost in costs.items():
        if name in SCALE_TITLES:
            yield f"### {name}: {SCALE_TITLES[name]}\n\n{_WORDS[name]}\n\n{_table(cost['runs'])}\n"


def _table(runs: Sequence[Mapping[str, Any]]) -> str:
    names = list(runs[0])
    lines = [[name.replace("_", " ") for name in names], ["---"] * len(names)]
    lines += [[_shown(run[name]) for name in names] for run in runs]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(figure: Any) -> str:
    if isinstance(figure, Mapping):
        return ", ".join(_shown(part) for part in figure.values())
    if figure is None:
        return "-"
    return f"{figure:,}" if isinstance(figure, int | float) else str(figure)
