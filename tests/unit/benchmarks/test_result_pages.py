"""The pages state the committed results: generated ones exactly, typed figures as they round."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from benchmarks.page import DOCS, PROFILE, RESULTS, chart, page
from benchmarks.page_text import COST_TITLES
from benchmarks.session import PROJECT

PERFORMANCE = (DOCS / "performance.md").read_text()
README = (PROJECT / "README.md").read_text()
# Kinds of threads in the columns of the shares, but for the last column, which has the rest.
SHARES = ("python", "tasks", "driving", "compiling", "files")


def measures(name: str = RESULTS.name) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(RESULTS.with_name(name).read_text())["measures"]
    return found


def race(name: str = RESULTS.name) -> dict[str, Any]:
    runs = measures(name)["N10"]["runs"]
    return {run["contender"]: run["figures"][0] for run in runs if len(run["figures"]) == 1}


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_page_and_its_charts_are_those_of_the_results() -> None:
    results, profile = json.loads(RESULTS.read_text()), json.loads(PROFILE.read_text())
    assert (DOCS / "benchmarks.md").read_text() == page(results, profile)
    for name, measure in results["measures"].items():
        if name not in COST_TITLES:
            assert (DOCS / "charts" / f"{name}.svg").read_text() == chart(name, measure)


def per_change(figures: Mapping[str, Any], stretch: str) -> float:
    return float(figures[stretch]["cpu_seconds"] / figures[stretch]["changes"])


def race_phrases() -> Iterator[str]:
    ours, flink, spark = (race()[name] for name in ("ours", "flink_upsert", "spark_merge"))
    common, half = ours["common"], ours["half"]
    yield f"{common['cpu_seconds']:.1f} and {flink['common']['cpu_seconds']:.1f} CPU seconds"
    rising, falling = half["cpu_seconds"], flink["half"]["cpu_seconds"]
    yield f"ours rises to {rising:.0f}, while Flink's falls to {falling:.0f}"
    assert rising > common["cpu_seconds"] and falling < flink["common"]["cpu_seconds"]
    assert half["changes_per_second"] == flink["half"]["changes_per_second"] == 2250
    yield f"{per_change(ours, 'half') / per_change(flink, 'half'):.2f} times Flink's CPU"
    again = race("race-profile.json")
    times = [per_change(again["flink_upsert"], of) / per_change(again["ours"], of)
             for of in ("common", "half")]  # fmt: skip
    yield f"Flink at {times[0]:.2f} and {times[1]:.2f} times ours"
    yield f"{per_change(spark, 'common') / per_change(ours, 'common'):.2f} times our CPU"
    yield f"up to {spark['held_rate']:,}, where"
    yield f"half of its rate is {spark['half']['changes_per_second']:,}"
    assert 29 < spark["common"]["p50_seconds"] < 33, "half a minute"
    assert all(each["common"]["p50_seconds"] < 7 for each in (ours, flink))
    yield f"took {reading(flink) / reading(ours):.1f} times as long as ours"
    parts = shares(again["ours"])
    yield f"the decoding alone, without commits, planning and compilers, is {parts[0]} %"
    yield f"would reach {100 / parts[0]:.1f} times"


def reading(figures: Mapping[str, Any]) -> float:
    return float(figures["count_seconds"] + figures["read_seconds"])


def shares(figures: Mapping[str, Any]) -> list[int]:
    spent, whole = figures["common"]["cpu_by_kind"], figures["common"]["cpu_seconds"]
    named = [spent.get(kind, 0.0) for kind in SHARES]
    rest = sum(spent.values()) - sum(named)
    return [round(100 * seconds / whole) for seconds in (*named, rest)]


def test_performance_repeats_the_figures_of_the_race() -> None:
    assert [said for said in race_phrases() if said not in one_line(PERFORMANCE)] == []


def test_the_readme_repeats_the_figures_of_the_race() -> None:
    ours, flink = (race()[name] for name in ("ours", "flink_upsert"))
    assert per_change(ours, "common") == pytest.approx(per_change(flink, "common"), rel=0.05)
    cpu = f"{per_change(ours, 'half') / per_change(flink, 'half'):.2f} times Flink's CPU at 2,250"
    rest = f"take {reading(flink) / reading(ours):.1f} times as long to read at rest"
    assert [said for said in (cpu, rest) if said not in one_line(README)] == []


@pytest.mark.parametrize("contender", ["ours", "flink_upsert", "spark_merge"])
def test_performance_repeats_the_shares_of_the_race(contender: str) -> None:
    shown = contender if contender == "ours" else f"`{contender}`"
    cells = [
        f"{share} %" if share else "-" for share in shares(race("race-profile.json")[contender])
    ]
    assert f"| {shown} | {' | '.join(cells)} |" in PERFORMANCE


def test_performance_repeats_the_seconds_of_many_tables() -> None:
    cost = measures()["N8"]
    took, wanted = cost["ours"]["seconds_per_batch"], cost["target"]["seconds_per_batch"]
    said = f"300 tables in one batch, takes {took:.0f} seconds, where {wanted:.0f} were wanted"
    assert said in one_line(PERFORMANCE)


def test_performance_repeats_the_cpu_of_the_load() -> None:
    loads = {run["contender"]: run["figures"] for run in measures()["P5"]["runs"]}
    cpu = {who: statistics.median(r["cpu_seconds"] for r in of) for who, of in loads.items()}
    own = cpu["ours"]
    said = f"{own / cpu['adbc_and_pyiceberg']:.1f} times the script's, and {own / cpu['dlt']:.1f}"
    assert said in one_line(PERFORMANCE)


def test_performance_repeats_the_parts_of_hudis_time() -> None:
    text = (DOCS / "benchmarks.md").read_text().split("## P1:")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| hudi | rows")]
    ratios = [[float(cell.rstrip(" |")) for cell in row[-2:]] for row in rows if len(row) == 6]
    applying, counting = ([min(of), max(of)] for of in zip(*ratios, strict=True))
    assert len(ratios) == 2
    said = (
        f"{applying[0]:.1f} to {applying[1]:.1f} times our time and counts in "
        f"{counting[0]:.0f} to {counting[1]:.0f} times"
    )
    assert said in one_line(PERFORMANCE)
