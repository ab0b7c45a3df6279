"""The race's part of docs/benchmarks.md: set-up of the contenders, and figures near and far."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.race.racers import RACERS
from benchmarks.sizes import SIZES

_HEADS = (
    *("contender", "of", "rate held", "changes per CPU s", "of half that rate", "p50, s", "p95, s"),
    *("max, s", "S3 requests", "Glue requests", "count, s", "read, s", "DuckDB reads"),
)
# Results without `greatest_tried` are of a ladder that ended after four rates, held or not.
_FOURTH_RATE = 1.5**3
Rows = list[tuple[str, ...]]


def race_tables(measure: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Rows]]:
    """Yield each table with the words before it: a table of figures, and one of the set-up."""
    rows = [_row(run) for run in measure["runs"] if run["figures"]]
    rounds = _rounds(measure)
    of_rounds = f"Medians of {rounds} rounds." if rounds > 1 else "One round, without a spread."
    words = (
        f"{of_rounds} Freshness and requests are those of the common rate. A `*` marks the "
        "greatest rate that was tried with this contender, which may hold more. Half the rate held "
        "is not the same for all; a higher one favours its contender, since more changes then "
        "share the fixed cost of a commit. The last three columns are of tables at rest: the "
        "stream has ended two triggers after the last change, time for our states to apply the "
        "whole changelog, so that our reads join no tail. Our freshness is that of `_current` with "
        "its tail.\n"
    )
    yield words, _HEADS, rows
    given: Rows = [(name, racer.given, racer.cannot or "-") for name, racer in RACERS.items()]
    yield "Set-up:\n", ("contender", "given", "does not, as set up here"), given


def race_title(measure: Mapping[str, Any]) -> str:
    """Return the chart's title, with the number of rounds."""
    rounds = _rounds(measure)
    taken = f"medians of {rounds} rounds" if rounds > 1 else "one round"
    return f"CPU seconds for 100,000 changes at two rates, {taken}"


def race_bars(measure: Mapping[str, Any]) -> dict[str, float | str]:
    """Return the chart's bars: CPU seconds at the common rate, then at half of the rate held."""
    bars: dict[str, float | str] = {}
    for stretch in ("common", "half"):
        for run in measure["runs"]:
            taken = [figures[stretch] for figures in run["figures"]]
            who = f"{run['contender']} {run['subject']}"
            if not taken:
                bars[who] = f"wrong: {run['wrong']}"
                continue
            rate = statistics.median(each["changes_per_second"] for each in taken)
            seconds = (100_000 * each["cpu_seconds"] / each["changes"] for each in taken)
            bars[f"{who}, {rate:,.0f}/s"] = statistics.median(seconds)
    return bars


def _rounds(measure: Mapping[str, Any]) -> int:
    return min(len(run["figures"]) for run in measure["runs"] if run["figures"])


def _row(run: Mapping[str, Any]) -> tuple[str, ...]:
    figures = run["figures"]

    def median(*path: str) -> float:
        return float(statistics.median(_at(each, path) for each in figures))

    marked = "*" if all(_held_all(run["contender"], each) for each in figures) else ""
    half = f"{median('half', 'changes_per_cpu_second'):,.0f}"
    return (
        run["contender"],
        run["subject"],
        f"{median('held_rate'):,.0f}{marked}",
        f"{median('common', 'changes_per_cpu_second'):,.0f}",
        f"{half} at {median('half', 'changes_per_second'):,.0f}/s",
        *(f"{median('common', f'{of}_seconds'):.1f}" for of in ("p50", "p95", "max")),
        *(f"{median('requests', service):,.0f}" for service in ("s3", "glue")),
        f"{median('count_seconds'):.1f}",
        f"{median('read_seconds'):.1f}",
        figures[-1]["duckdb"],
    )


def _held_all(contender: str, figures: Mapping[str, Any]) -> bool:
    """Return True if the contender held every rate that was tried."""
    if "greatest_tried" in figures:
        return bool(figures["held_rate"] >= figures["greatest_tried"])
    fourth = SIZES["full"].race.first_rates[contender] * _FOURTH_RATE
    return bool(figures["is_most"] or figures["held_rate"] >= fourth)


def _at(figures: Mapping[str, Any], path: tuple[str, ...]) -> float:
    found: Any = figures
    for name in path:
        found = found[name]
    return float(found)
