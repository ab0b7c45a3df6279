"""Targets of the measures, one for each subject: our figure, the bound, and if it is met.

All follow from a measure's runs as its JSON has them, so results that are older than a target have
it, too. N1 to N10 are the targets' own numbers; any other target has the name of its measure.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from benchmarks.append import append_targets
from benchmarks.contenders import OURS
from benchmarks.first_load import ADBC, DLT
from benchmarks.race.measure import TARGETS as RACE
from benchmarks.results import Bound, Figure, Run, median_of, meets, sign_of
from benchmarks.scale.backlog import TARGET as BACKLOG
from benchmarks.scale.cluster import TARGET as CLUSTER
from benchmarks.upkeep import reading_targets

PER_TEN_MILLION_S = 0.10
_LOADING_CPU = Bound("<=", 1.2)
_MOST_ROWS = 100_000_000  # P2's target holds up to them
# Where a measure's subjects have different bounds.
_BY_SUBJECT: Mapping[str, Callable[[str], Mapping[str, Bound]]] = {
    "P3": append_targets,
    "P7": reading_targets,
}
# Numbers of targets: by measure, how the subject begins, and the peer; the first that fits.
_NUMBERS = (
    ("P1", "", "samples_way", "N5"),
    ("P1", "", "plain_merge", "N5"),
    ("P3", "table", "", "N4b"),
    ("P3", "", "", "N4"),
    ("P4", "", "", "N4"),
    ("P5", "", ADBC, "N6"),
    ("P6", "seconds for 100,000 changes", "", "N2"),
    ("P6", "", "", "N3"),
    ("P7", "", "", "N9"),
    ("P8", "", "", "N9"),
    ("P9", "", "plain_merge", "N5"),
    ("N10a", "", "", "N10"),
)
_COSTS_TO_COME = {"N8a": CLUSTER, "N8c": BACKLOG}
Target = dict[str, Any]


def targets_of(name: str, measure: Mapping[str, Any]) -> list[Target]:
    """Return the targets of a measure, with what became of each."""
    if not measure.get("peers"):
        return [
            _cost(name, name, figure.replace("_", " "), measure["ours"][figure], bound, figure)
            for figure, bound in measure["target"].items()
        ]
    found = [*_compared(name, measure)]
    if name == "P2":
        found += _growths(measure)
    if name == "P5":
        found += _loading_cpu(measure)
    return found


def unmeasured(measures: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield number, measure, subject and bound of each target without a measurement."""
    for name, target in _COSTS_TO_COME.items():
        if name not in measures:
            for figure, bound in target.items():
                yield name, name, figure.replace("_", " "), f"{sign_of(figure)} {bound:,g}"
    if "N10a" not in measures:
        for peer, of_peer in RACE.items():
            yield "N10", "N10a", f"far, compared with {peer}", str(of_peer)
    if not any(large >= _MOST_ROWS for _, large, _, _ in growth(measures.get("P2", {}))):
        bound_text = f"<= {PER_TEN_MILLION_S:g}"
        yield "N5", "P2", f"the same up to {_MOST_ROWS:,} rows", bound_text


def growth(measure: Mapping[str, Any]) -> Iterator[tuple[int, int, float, float]]:
    """Yield, from each size of P2 to the next, seconds that further 10,000,000 rows add.

    Gives both numbers of rows, then the seconds of applying and of counting.
    """
    by_rows = {run["rows"]: run for run in measure.get("runs", ()) if run["figures"]}
    for small, large in pairwise(by_rows[rows] for rows in sorted(by_rows)):
        tens = (large["rows"] - small["rows"]) / 10_000_000
        counting = (_middle(large, "counting") - _middle(small, "counting")) / tens
        seconds = (_middle(large, "seconds") - _middle(small, "seconds")) / tens
        yield small["rows"], large["rows"], seconds - counting, counting


def _compared(name: str, measure: Mapping[str, Any]) -> Iterator[Target]:
    runs = [Run.from_json(run) for run in measure["runs"]]
    bounds = {peer: Bound.parse(text) for peer, text in measure["target"].items()}
    if not bounds.keys() <= {run.contender for run in runs}:  # P2 compares our own sizes
        for peer, bound in bounds.items():
            yield _row(name, "", peer, measure["ours"], measure["peers"][peer], bound)
        return
    of_subject = _BY_SUBJECT.get(name)
    for subject in dict.fromkeys(run.subject.get("subject", "") for run in runs):
        own = [run for run in runs if run.subject.get("subject", "") == subject]
        for peer, bound in (of_subject(subject) if of_subject else bounds).items():
            yield _row(name, subject, peer, median_of(own, OURS), median_of(own, peer), bound)


def _growths(measure: Mapping[str, Any]) -> Iterator[Target]:
    for small, large, applying, _ in growth(measure):
        of = f"seconds for each further 10,000,000 rows, from {small:,} to {large:,}"
        bound = PER_TEN_MILLION_S
        yield _cost("N5", "P2", of, round(applying, 3), bound, "seconds")


def _loading_cpu(measure: Mapping[str, Any]) -> Iterator[Target]:
    """Compare our CPU seconds with those of the fastest Python loader."""
    runs = {run["contender"]: run for run in measure["runs"] if run["figures"]}
    loaders = [name for name in (DLT, ADBC) if name in runs]
    if OURS in runs and loaders:
        fastest = min(loaders, key=lambda name: _middle(runs[name], "seconds"))
        ours, theirs = (_middle(runs[name], "cpu_seconds") for name in (OURS, fastest))
        yield _row("P5", "CPU seconds of it", fastest, ours, theirs, _LOADING_CPU, number="N6")


def _row(
    name: str,
    subject: str,
    peer: str,
    ours: Figure,
    theirs: Figure,
    bound: Bound,
    number: str | None = None,
) -> Target:
    ratio = bound.ratio(ours, theirs)
    return {
        "name": number or _number(name, subject, peer),
        "measure": name,
        "of": subject,
        "compared_with": peer,
        "ours": _rounded(ours),
        "theirs": _rounded(theirs),
        "ratio": None if ratio is None else round(ratio, 3),
        "target": str(bound),
        "met": bound.margin(ratio) >= 1,
    }


def _cost(name: str, measure: str, of: str, ours: float, bound: float, figure: str) -> Target:
    return {
        "name": name,
        "measure": measure,
        "of": of,
        "ours": ours,
        "target": f"{sign_of(figure)} {bound:,g}",
        "met": meets(figure, ours, bound),
    }


def _number(measure: str, subject: str, peer: str) -> str:
    for of_measure, start, of_peer, number in _NUMBERS:
        if measure == of_measure and subject.startswith(start) and of_peer in ("", peer):
            return number
    return measure


def _middle(run: Mapping[str, Any], figure: str) -> float:
    figures: Sequence[Mapping[str, Any]] = run["figures"]
    return float(statistics.median(batch[figure] for batch in figures))


def _rounded(figure: Figure) -> Figure:
    return round(figure, 3) if isinstance(figure, float) else figure
