"""Targets: each subject's bound, what became of it, and the reason if it is missed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks.changelog import Fit
from benchmarks.page import DOCS, RESULTS, page
from benchmarks.scale.backlog import TARGET as BACKLOG
from benchmarks.scale.cluster import TARGET as CLUSTER
from benchmarks.sizing import job_of
from benchmarks.targets import targets_of, unmeasured
from benchmarks.view_queries import view_targets

MEASURES: Mapping[str, Any] = json.loads(RESULTS.read_text())["measures"]
VIEWS = json.loads(RESULTS.with_name("views.json").read_text())["measures"]["views"]
MEASURED = {"commit": "1234567", "at": "2026-01-01 00:00 UTC"}


def test_stored_targets_are_those_of_the_runs() -> None:
    assert {name: measure["targets"] for name, measure in MEASURES.items()} == {
        name: targets_of(name, measure) for name, measure in MEASURES.items()
    }
    assert VIEWS["targets"] == view_targets(VIEWS["runs"])
    assert VIEWS["met"] is all(target["met"] for target in VIEWS["targets"])


def test_every_number_is_on_the_page() -> None:
    table = (DOCS / "benchmarks.md").read_text().split("## Targets")[1].split("\n## ")[0]
    numbers = re.findall(r"^\| (\w+) \| \w+ \|", table, re.M)
    asked = {*(f"N{n}" for n in range(1, 11)), "N1a", "N4b", "N7a"}
    assert asked <= {*numbers}
    rows = sum(len(measure["targets"]) for measure in MEASURES.values())
    assert len(numbers) == rows + len([*unmeasured(MEASURES)]) + 1, "and the heads"


def test_every_missed_target_has_its_reason() -> None:
    """The bold words of a reason begin with the measure, and name the missed targets."""
    missed: dict[str, set[str]] = {}
    for name, measure in MEASURES.items():
        for target in measure["targets"]:
            if not target["met"]:
                missed.setdefault(name, {name}).add(target["name"])
    if not VIEWS["met"]:
        missed["views"] = {"views"}
    text = (DOCS / "performance.md").read_text().split("## Missed targets")[1].split("\n## ")[0]
    heads = re.findall(r"^- \*\*(.+?)\*\*", text, re.M)
    named = [re.findall(r"\b(?:[NP]\d+\w?|views)\b", head) for head in heads]
    assert missed and {words[0]: {*words} for words in named} == missed


def run(contender: str, seconds: float, **about: Any) -> dict[str, Any]:
    figures = [{"seconds": seconds, "cpu_seconds": 2 * seconds}]
    return {"contender": contender, **about, "wrong": None, "figures": figures}


def compared(target: dict[str, str], *runs: dict[str, Any]) -> dict[str, Any]:
    return {"ours": 1.0, "peers": dict.fromkeys(target, 1.0), "target": target, "runs": [*runs]}


def test_each_subject_has_its_own_target() -> None:
    runs = [
        *(run("ours", 1.0, subject="log"), run("bare_append", 1.1, subject="log")),
        *(run("ours", 1.0, subject="table"), run("bare_append", 0.95, subject="table")),
    ]
    found = targets_of("P3", compared({"bare_append": ">= 0.9x"}, *runs))
    assert [(t["name"], t["of"], t["ratio"], t["target"], t["met"]) for t in found] == [
        ("N4", "log", 1.1, ">= 1x", True),
        ("N4b", "table", 0.95, ">= 0.9x", True),
    ]


def test_a_wrong_end_misses_its_target() -> None:
    wrong = {**run("goal", 1.0, subject="x"), "wrong": "1 row is missing", "figures": []}
    [found] = targets_of("P6", compared({"goal": "<= 1x"}, run("ours", 0.1, subject="x"), wrong))
    assert (found["name"], found["theirs"], found["ratio"]) == (
        "N3", "wrong: 1 row is missing", None,
    )  # fmt: skip
    assert not found["met"]


def test_the_cpu_of_a_load_is_compared_with_the_fastest_loader() -> None:
    runs = [run("ours", 3.0), run("dlt", 4.0), run("adbc_and_pyiceberg", 2.0)]
    found = targets_of("P5", compared({"dlt": ">= 1.3x"}, *runs))
    assert [(t["name"], t["compared_with"], t["ratio"], t["met"]) for t in found] == [
        ("P5", "dlt", 1.333, True),
        ("N6", "adbc_and_pyiceberg", 1.5, False),
    ]


def sized(rows: int, seconds: float) -> dict[str, Any]:
    figures = [{"seconds": seconds, "counting": 0.5}]
    return {"contender": "ours", "rows": rows, "wrong": None, "figures": figures}


def test_growth_is_a_target_from_each_size_to_the_next() -> None:
    runs = [sized(1_000_000, 1.0), sized(11_000_000, 1.1), sized(111_000_000, 2.2)]
    found = targets_of("P2", compared({"small": "<= 1.3x"}, *runs))
    assert [(t["ours"], t["target"], t["met"]) for t in found[1:]] == [
        (0.1, "<= 0.1", True),
        (0.11, "<= 0.1", False),
    ]
    measured = {"P2": {"runs": runs}, "N8a": {}, "N8c": {}, "N10a": {}}
    assert [*unmeasured(measured)] == []
    without = {*(of for _, _, of, _ in unmeasured({}))}
    assert {of.replace("_", " ") for of in (*CLUSTER, *BACKLOG)} < without


def test_costs_with_a_target_say_if_it_is_met() -> None:
    cost = {
        "measured": MEASURED, "ours": {"seconds_per_batch": 31.0, "events_per_second": 5.0},
        "target": {"seconds_per_batch": 30.0}, "runs": [{"tables": 300}],
    }  # fmt: skip
    text = page({"machine": {}, "versions": {}, "measures": {"N8": cost}})
    assert "| N8: seconds per batch | 31 | <= 30 | **no** |" in text
    assert "| N8: events per second | 5 | none | - |" in text
    assert "| N8 | N8 | seconds per batch | 31 |  |  | <= 30 | **no** |" in text
    backlog = {**cost, "target": {"events_per_second": 5.0}}
    assert [target["met"] for target in targets_of("N8c", backlog)] == [True]


@pytest.mark.parametrize(
    ("tables", "changes", "trigger", "job"),
    [
        (20, 10_000, 10, "2 x G.025X"),
        (20, 300_000, 60, "3 x G.025X"),  # 100,000 records for each core
        (20, 10_000_000, 60, "51 x G.025X"),
        (100, 10_000, 10, "2 x G.025X, states later"),
        (600, 10_000, 10, "a longer trigger"),
    ],
)
def test_size_of_a_job_follows_from_the_formula(
    tables: int, changes: int, trigger: int, job: str
) -> None:
    fits = {"N1": Fit(0.5, 0.09, 1e-6), "N1a": Fit(0.4, 0.01, 5e-7)}
    assert job_of(fits, tables, changes, trigger) == job


def test_the_page_has_sizes_and_says_what_storage_the_formula_has() -> None:
    runs = [
        {"tables": tables, "changes": changes, "cpu_seconds": [1 + tables / 10 + changes / 1e5]}
        for tables in (1, 20)
        for changes in (2_000, 200_000)
    ]
    cost = {"measured": MEASURED, "ours": {}, "target": {}, "runs": runs}
    far = {**cost, "runs": [{"tables": 20, "changes": 2_000, "cpu_seconds": [3.5]}]}
    text = page({"machine": {}, "versions": {}, "measures": {"N1": cost, "N1a": cost, "N7": far}})
    assert "takes 3.50 CPU seconds, where the formula of N1 gives 3.02" in text
    assert "| 20 | 1,000 | 10 | 3.1 to 3.1 | 0.31 to 0.31 | 2 x G.025X |" in text
