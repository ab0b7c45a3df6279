"""The race's part of docs/benchmarks.md: set-up of the contenders, and figures near and far."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.race.racers import RACERS

_HEADS = (
    *("contender", "of", "rate held", "changes per CPU s", "of half that rate", "p50, s", "p95, s"),
    *("max, s", "S3 requests", "Glue requests", "count, s", "read, s", "DuckDB reads"),
)
Rows = list[tuple[str, ...]]


def race_tables(measure: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Rows]]:
    """Yield each table with the words before it: a table of figures, and one of the set-up."""
    rows = [_row(run) for run in measure["runs"] if run["figures"]]
    rounds = min(len(run["figures"]) for run in measure["runs"] if run["figures"])
    of_rounds = f"Medians of {rounds} rounds." if rounds > 1 else "One round, without a spread."
    words = (
        f"{of_rounds} Freshness and requests are those of the common rate; a `*` marks the "
        "greatest rate that was tried:\n"
    )
    yield words, _HEADS, rows
    given: Rows = [(name, racer.given, racer.cannot or "-") for name, racer in RACERS.items()]
    yield "Set-up:\n", ("contender", "given", "does not, as set up here"), given


def race_bars(measure: Mapping[str, Any]) -> dict[str, float | str]:
    """Return the chart's bars: each contender's CPU seconds, near and far."""
    bars: dict[str, float | str] = {}
    for run in measure["runs"]:
        seconds = [figures["seconds"] for figures in run["figures"]]
        bar = statistics.median(seconds) if seconds else f"wrong: {run['wrong']}"
        bars[f"{run['contender']} {run['subject']}"] = bar
    return bars


def _row(run: Mapping[str, Any]) -> tuple[str, ...]:
    figures = run["figures"]

    def median(*path: str) -> float:
        return float(statistics.median(_at(each, path) for each in figures))

    marked = "*" if all(each["is_most"] for each in figures) else ""
    return (
        run["contender"],
        run["subject"],
        f"{median('held_rate'):,.0f}{marked}",
        f"{median('common', 'changes_per_cpu_second'):,.0f}",
        f"{median('half', 'changes_per_cpu_second'):,.0f}",
        *(f"{median('common', f'{of}_seconds'):.1f}" for of in ("p50", "p95", "max")),
        *(f"{median('requests', service):,.0f}" for service in ("s3", "glue")),
        f"{median('count_seconds'):.1f}",
        f"{median('read_seconds'):.1f}",
        figures[-1]["duckdb"],
    )


def _at(figures: Mapping[str, Any], path: tuple[str, ...]) -> float:
    found: Any = figures
    for name in path:
        found = found[name]
    return float(found)
