"""Committed costs of `<t>_current`: what the documentation promises holds for what was measured."""

import json
from pathlib import Path

from benchmarks.run import PARTS, RESULTS
from benchmarks.view_costs import READERS
from benchmarks.view_queries import SHAPES

COSTS = json.loads(Path(RESULTS.with_name("views.json")).read_text())["measures"]["views"]
RUNS = {(run["reader"], run["tail"], run["shape"]): run for run in COSTS["runs"]}


def ratio(reader: str, tail: str, shape: str) -> float:
    run = RUNS[reader, tail, shape]
    return float(run["view"]["bytes"] / run["state"]["bytes"])


def test_every_query_was_measured_and_right() -> None:
    assert "views" in PARTS
    assert set(RUNS) == {(r, t, s) for r in READERS for t in COSTS["tail_events"] for s in SHAPES}
    assert {run["wrong"] for run in RUNS.values()} == {None}


def test_a_view_without_a_tail_reads_at_most_half_as_much_again() -> None:
    rows = [shape for shape in SHAPES if shape != "count"]
    ratios = [ratio(reader, "empty", shape) for reader in READERS for shape in rows]
    ratios += [ratio(reader, "empty", "count") for reader in READERS if reader != "trino"]
    assert max(ratios) <= 1.5


def test_queries_by_key_read_at_most_half_as_much_again_with_a_small_tail() -> None:
    ratios = [ratio(reader, "small", shape) for reader in READERS for shape in ("point", "range")]
    assert max(ratios) <= 1.5


def test_a_count_in_trino_reads_keys_and_positions_but_not_the_rows() -> None:
    counts = [RUNS["trino", tail, "count"]["view"]["bytes"] for tail in COSTS["tail_events"]]
    assert max(counts) <= RUNS["trino", "empty", "full scan"]["state"]["bytes"] / 2
