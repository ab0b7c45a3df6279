"""`python -m benchmarks.page`: docs/benchmarks.md and its charts, out of results/full.json.

Nothing on the page is typed by hand but its words: every figure is the file's.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.changelog import fitted
from benchmarks.charts import bar_chart
from benchmarks.contenders import CONTENDERS, OURS
from benchmarks.page_text import (
    APPLYING,
    BARE_CACHED,
    COMPARED,
    COST_TITLES,
    COUNTED,
    EMPTY,
    FITTED,
    FITTED_COSTS,
    INTRODUCTION,
    KINDS,
    OTHER_PROFILE,
    PROFILED,
    STREAM_COSTS,
    TARGETS,
    TITLES,
    WORDS,
)
from benchmarks.race.page_section import race_bars, race_tables, race_title
from benchmarks.results import Bound, meets, sign_of
from benchmarks.scale.run_tables import run_tables
from benchmarks.session import PROJECT
from benchmarks.sizing import sizing
from benchmarks.targets import PER_TEN_MILLION_S, growth, targets_of, unmeasured

RESULTS = PROJECT / "benchmarks" / "results" / "full.json"
PROFILE = RESULTS.with_name("profile.json")
DOCS = PROJECT / "docs"
RACES = ("N10", "N10a")


def main() -> int:
    """0 when the page is written; 1 if there are no results."""
    if not RESULTS.exists():
        sys.stderr.write("no results: `make bench-full` first\n")
        return 1
    results = json.loads(RESULTS.read_text())
    profile = json.loads(PROFILE.read_text()) if PROFILE.exists() else None
    charts = DOCS / "charts"
    charts.mkdir(exist_ok=True)
    for name, measure in results["measures"].items():
        if name not in COST_TITLES:
            (charts / f"{name}.svg").write_text(chart(name, measure))
    (DOCS / "benchmarks.md").write_text(page(results, profile))
    return 0


def chart(name: str, measure: Mapping[str, Any]) -> str:
    """The measure's chart as SVG."""
    bars, title = {OURS: measure["ours"], **measure["peers"]}, TITLES[name]
    if name in RACES:
        bars, title = race_bars(measure), race_title(measure)
    return bar_chart(f"{name}: {title}", bars, unit="s", ours=OURS)


def page(results: Mapping[str, Any], profile: Mapping[str, Any] | None = None) -> str:
    """The whole page in Markdown; `profile` is that of `benchmarks.profile`."""
    parts = [INTRODUCTION, *_facts("machine", results), *_facts("versions", results)]
    parts += _targets(results["measures"])
    costs = {n: m for n, m in results["measures"].items() if n in COST_TITLES}
    measures = {n: m for n, m in results["measures"].items() if n not in costs}
    parts += _costs(costs)
    for name, measure in measures.items():
        parts += [f"## {name}: {TITLES[name]}\n", f"![{name}](charts/{name}.svg)\n"]
        parts += [_circumstances(measure["measured"])]
        parts += [f"{WORDS[name]}\n", *_cached(name, measure), _verdict(measure), _runs(measure)]
        parts += [
            *_apart(measure),
            *_who_spent(measure),
            *_growth(name, measure),
            *_race(name, measure),
        ]
        if profile is not None and name in profile["profiles"]:
            parts += _profiled(name, measure, profile)
    titles = {**TITLES, **COST_TITLES}
    missing = [f"{n} ({title})" for n, title in titles.items() if n not in results["measures"]]
    if missing:
        parts.append(f"Not measured yet in the full size: {'; '.join(missing)}.\n")
    return "\n".join([*parts, _contenders()])


def _targets(measures: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of all targets, by their numbers."""
    found = [each for name, measure in measures.items() for each in targets_of(name, measure)]
    rows = [_target_row(each) for each in found]
    for number, measure, of, bound in unmeasured(measures):
        rows.append((number, measure, of, "not measured", "", "", bound, "-"))
    yield TARGETS
    heads = ("target", "measure", "of", "ours", "theirs", "ratio", "bound", "met")
    yield _table(heads, sorted(rows, key=_order))


def _order(row: tuple[str, ...]) -> tuple[str, int, str, str]:
    number, measure = row[:2]
    return number[0], int("".join(filter(str.isdigit, number))), number, measure


def _target_row(target: Mapping[str, Any]) -> tuple[str, ...]:
    peer = f"compared with {target['compared_with']}" if "compared_with" in target else ""
    of = ", ".join(filter(None, (target["of"], peer)))
    figures = [_shown(target[key]) for key in ("ours", "theirs", "ratio") if "theirs" in target]
    figures = figures or [f"{target['ours']:,g}", "", ""]
    met = "yes" if target["met"] else "**no**"
    return target["name"], target["measure"], of, *figures, target["target"], met


def _costs(costs: Mapping[str, Any]) -> Iterator[str]:
    """A table of the costs that have no peer, with their targets."""
    if not costs:
        return
    yield "## Costs in absolute units\n"
    rows = [
        (f"{name}: {figure.replace('_', ' ')}", f"{value:,g}", *_cost_target(cost, figure))
        for name, cost in costs.items()
        for figure, value in cost["ours"].items()
    ]
    yield _table(("cost", "measured", "target", "met"), rows)
    for name, cost in costs.items():
        yield f"{name}, {COST_TITLES[name]}: {_circumstances(cost['measured'])}"
    yield from _checked(costs)
    yield from _fits({name: costs[name]["runs"] for name in FITTED_COSTS if name in costs})
    yield from sizing(costs)
    yield from run_tables(costs)


def _cost_target(cost: Mapping[str, Any], figure: str) -> tuple[str, str]:
    target = cost["target"].get(figure)
    if target is None:
        return "none", "-"
    met = meets(figure, cost["ours"][figure], target)
    return f"{sign_of(figure)} {target:,g}", "yes" if met else "**no**"


def _checked(costs: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the streams' tables began with, and how their ends were checked."""
    taken = [name for name in STREAM_COSTS if name in costs]
    compared = [n for n in taken if all(run.get("compared_states") for run in costs[n]["runs"])]
    counted = [name for name in taken if name not in compared]
    if taken:
        yield EMPTY.format(measures=", ".join(taken))
    if compared:
        yield COMPARED.format(measures=", ".join(compared))
    if counted:
        yield COUNTED.format(measures=", ".join(counted))


def _fits(runs: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[str]:
    """The formula of a batch's CPU seconds, by measure."""
    rows = []
    for name, of_sizes in runs.items():
        fit = fitted(of_sizes)
        sizes = [sorted({run[of] for run in of_sizes}) for of in ("tables", "changes")]
        measured = ["; ".join(f"{size:,}" for size in of) for of in sizes]
        costs = (f"{fit.batch:.2f}", f"{fit.table:.3f}", f"{fit.change * 1e6:.1f}")
        rows.append((COST_TITLES[name], *costs, f"{fit.error:.2f}", *measured))
    if rows:
        yield FITTED
        heads = ("a, s", "b, s", "c, us", "off by at most, s", "tables", "changes")
        yield _table(("CPU of", *heads), rows)


def _circumstances(measured: Mapping[str, str]) -> str:
    """When, at which commit and on which of the machines; the last only where it was noted."""
    on = f", on {measured['processor']}" if "processor" in measured else ""
    return f"Measured {measured['at']}, at commit {measured['commit']}{on}.\n"


_FACTS = {
    "machine": "Machine of the newest measure (each measure names its processor)",
    "versions": "Versions",
}


def _facts(heading: str, results: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"**{_FACTS[heading]}**: "
        + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in results[heading].items())
        + "\n"
    )


def _verdict(measure: Mapping[str, Any]) -> str:
    rows = []
    for peer, figure in measure["peers"].items():
        ratio, target = measure["ratio"].get(peer), measure["target"].get(peer)
        figures = (_shown(measure["ours"]), _shown(figure), _shown(ratio))
        rows.append((peer, *figures, target or "none", _met(ratio, target)))
    return _table(("compared with", "ours, s", "theirs, s", "ratio", "target", "met"), rows)


def _met(ratio: float | None, target: str | None) -> str:
    if ratio is None or target is None:
        return "-"
    return "yes" if Bound.parse(target).margin(ratio) >= 1 else "**no**"


def _runs(measure: Mapping[str, Any]) -> str:
    """Each run's medians; requests only where somebody counted."""
    rows = []
    for run in measure["runs"]:
        subject = _subject(run)
        if run["wrong"] is not None:
            rows.append((run["contender"], subject, f"wrong: {run['wrong']}", "", "", "", ""))
            continue
        figures = run["figures"]
        seconds = [batch["seconds"] for batch in figures]
        requests = [batch.get("requests", {}) for batch in figures]
        rows.append(
            (
                run["contender"],
                subject,
                f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})",
                _median([batch.get("cpu_seconds") for batch in figures], ".1f"),
                str(max((b["peak_mib"] for b in figures if "peak_mib" in b), default="")),
                *(_median([b.get(name) for b in requests], "g") for name in ("s3", "glue")),
            )
        )
    heads = ("contender", "of", "seconds", "CPU s", "peak MiB", "S3 requests", "Glue requests")
    return _table(heads, rows)


def _median(figures: list[float | None], form: str) -> str:
    counted = [figure for figure in figures if figure is not None]
    return f"{statistics.median(counted):{form}}" if counted else "not counted"


def _subject(run: Mapping[str, Any]) -> str:
    beside = ("contender", "wrong", "figures")
    return ", ".join(f"{key} {value}" for key, value in run.items() if key not in beside)


def _cached(name: str, measure: Mapping[str, Any]) -> Iterator[str]:
    """Yield a remark where the peer of P4 kept its rows, as it did before runs recorded `rows`."""
    if name == "P4" and not all("rows" in run for run in measure["runs"]):
        yield BARE_CACHED


def _apart(measure: Mapping[str, Any]) -> Iterator[str]:
    """Give applying and counting by themselves, where both were timed."""
    spent = {
        (run["contender"], _subject(run)): [
            statistics.median(batch["seconds"] - batch["counting"] for batch in run["figures"]),
            _middle(run, "counting"),
        ]
        for run in measure["runs"]
        if run["figures"] and all("counting" in batch for batch in run["figures"])
    }
    rows = []
    for (contender, subject), seconds in spent.items():
        ours = None if contender == OURS else spent.get((OURS, subject))
        ratios = (
            [f"{own / of:.2f}" for own, of in zip(seconds, ours, strict=True)] if ours else "--"
        )
        rows.append((contender, subject, *(f"{own:.2f}" for own in seconds), *ratios))
    if rows:
        yield APPLYING
        heads = ("applying, s", "counting, s", "times our applying", "times our counting")
        yield _table(("contender", "of", *heads), rows)


def _who_spent(measure: Mapping[str, Any]) -> Iterator[str]:
    """Of each run the CPU seconds by kind of Java's threads, where that was measured.

    Medians: a thread's end within one batch may put its seconds under another kind.
    """
    spent = _spent(measure, "cpu_by_kind")
    batches = [batch for of_run in spent.values() for batch in of_run]
    kinds = [kind for kind in KINDS if any(batch.get(kind) for batch in batches)]
    if kinds:
        yield "CPU seconds by thread, of a batch or of the race at the common rate:\n"
        heads = ("contender", "of", *(KINDS[kind] for kind in kinds))
        yield _table(heads, ((*names, *_medians(run, kinds)) for names, run in spent.items()))
    for (_, subject), [stretch] in _spent(measure, "cpu_by_part").items():
        yield f"CPU seconds of each part of the lake, {subject}:\n"
        yield _table(tuple(stretch), [tuple(f"{seconds:.1f}" for seconds in stretch.values())])


def _spent(measure: Mapping[str, Any], by: str) -> Mapping[tuple[str, str], list[Any]]:
    """Return the CPU seconds by contender and subject, of the runs that have them."""
    return {
        (run["contender"], _subject(run)): [batch[by] for batch in run["figures"]]
        for run in measure["runs"]
        if run["figures"] and all(by in batch for batch in run["figures"])
    }


def _medians(batches: list[Mapping[str, float]], kinds: list[str]) -> Iterator[str]:
    for kind in kinds:
        yield f"{statistics.median(batch.get(kind, 0.0) for batch in batches):.1f}"


def _profiled(name: str, measure: Mapping[str, Any], profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield the profile, unless P4's is of another act than its runs: those keep no rows."""
    if name == "P4" and {run.get("rows") for run in measure["runs"]} != {profile.get("rows")}:
        yield OTHER_PROFILE
        return
    yield from _one_batch(profile["profiles"][name], profile["versions"]["cdclake"])


def _one_batch(acts: Mapping[str, Any], commit: str) -> Iterator[str]:
    """What Spark was asked in one batch, one query after the other."""
    yield PROFILED.format(commit=commit)
    rows = []
    for act, spent in acts.items():
        for query in spent["queries"]:
            times = [f"{query[key]:.2f}" for key in ("began", "ended", "cpu_seconds")]
            rows.append((act, query["name"], *times, str(query["tasks"])))
        alone, whole = f"{spent['driver_alone']:.2f}", f"{spent['seconds']:.2f}"
        rows.append((act, f"*no query: {alone} s in all*", "0.00", whole, "", ""))
    yield _table(("act", "who asked", "from, s", "to, s", "its tasks' CPU s", "tasks"), rows)


def _growth(name: str, measure: Mapping[str, Any]) -> Iterator[str]:
    """Give the cost of growth, where sizes were compared: from each size to the next."""
    if name != "P2":
        return
    for small, large, applying, counting in growth(measure):
        yield (
            f"From {small:,} to {large:,} rows each further 10,000,000 rows take "
            f"{applying:.2f} s more to apply to (target: <= {PER_TEN_MILLION_S:.2f} s), "
            f"and {counting:.2f} s more to count.\n"
        )


def _race(name: str, measure: Mapping[str, Any]) -> Iterator[str]:
    """Give the race's own figures."""
    if name not in RACES:
        return
    for words, heads, rows in race_tables(measure):
        yield words
        yield _table(heads, rows)


def _middle(run: Mapping[str, Any], figure: str) -> float:
    return float(statistics.median(batch[figure] for batch in run["figures"]))


def _contenders() -> str:
    rows = [(name, kind.given, kind.cannot or "-") for name, kind in CONTENDERS.items()]
    return "## Who was given what\n\n" + _table(
        ("contender", "given", "does not, as set up here"), rows
    )


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _shown(figure: float | str | None) -> str:
    if figure is None:
        return "-"
    return figure if isinstance(figure, str) else f"{figure:.2f}"


if __name__ == "__main__":
    sys.exit(main())
