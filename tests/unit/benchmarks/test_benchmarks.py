"""The benchmarks' own judgement: a history that could be, a wrong end that is found, targets."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from benchmarks.changelog import LOG_COST, fitted, judged_costs
from benchmarks.dataset import DataSet
from benchmarks.expected import differences, same_rows
from benchmarks.history import INSERTS_ONLY, History
from benchmarks.page import page
from benchmarks.page_text import BARE_CACHED
from benchmarks.results import Bound, Measure, Run, worst_subject
from benchmarks.run import NAMES, PARTS, keep
from benchmarks.sizes import SIZES
from benchmarks.stream_batches import plan_of, wrong_states


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    return DataSet(folder=folder, rows=500, changes=200, batches=2, keys="zipf").make()


@pytest.mark.parametrize("size", ["full", "tiny"])
def test_a_run_without_names_takes_every_measure_of_the_page(size):
    assert {*SIZES[size].measures} == {*NAMES} - {*PARTS}


@pytest.mark.parametrize("keys", ["zipf", "uniform"])
def test_no_change_is_of_a_row_that_is_not_there(keys):
    alive = set(range(1, 101))
    for change in History(100, keys).changes(5_000):
        assert (change.key in alive) == (change.op != "c")
        (alive.discard if change.op == "d" else alive.add)(change.key)


def test_a_history_is_the_same_each_time_and_mostly_inserts():
    first, again = (list(History(1_000, "zipf").changes(2_000)) for _ in range(2))
    assert first == again
    assert 0.65 < sum(change.op == "c" for change in first) / len(first) < 0.75


def test_inserts_only_are_new_keys_in_order():
    changes = History(10, "uniform", INSERTS_ONLY).changes(3)
    assert [(change.op, change.key) for change in changes] == [("c", 11), ("c", 12), ("c", 13)]


COLUMNS = "id, customer_id, quantity, price, status, note, paid, created_at, updated_at"


def write_end(data: DataSet, folder: Path, condition: str = "true") -> Path:
    """The end as Python folds it, written as a contender would, but for what `condition` drops."""
    changes = f"read_parquet({[str(file) for file in data.batch_files]})"
    folder.mkdir(exist_ok=True)
    with duckdb.connect() as duck:
        events = f"SELECT id, cdc_op, cdc_offset FROM {changes} ORDER BY cdc_offset"
        newest = {id: (op, offset) for id, op, offset in duck.execute(events).fetchall()}
        kept = [offset for op, offset in newest.values() if op != "d"]
        end = (
            f"SELECT {COLUMNS} FROM '{data.base}/*.parquet' WHERE id NOT IN {tuple(newest)}"
            f" UNION ALL SELECT {COLUMNS} FROM {changes} WHERE cdc_offset IN {tuple(kept)}"
        )
        kept_rows = f"SELECT * FROM ({end}) WHERE {condition}"
        duck.execute(f"COPY ({kept_rows}) TO '{folder / condition[:2]}.parquet'")
    return folder


def test_a_right_end_has_no_differences(data, tmp_path):
    assert differences(data.base, data.batch_files, write_end(data, tmp_path)) is None


@pytest.mark.parametrize("condition", ["id <> 501", "id % 7 <> 0"])
def test_a_lacking_row_is_found(data, tmp_path, condition):
    found = differences(data.base, data.batch_files, write_end(data, tmp_path, condition))
    assert found is not None
    assert found.endswith(" 0 are not expected")


def test_a_row_too_often_is_found(data, tmp_path):
    write_end(data, tmp_path)
    found = differences(data.base, data.batch_files, write_end(data, tmp_path, "id = 502"))
    assert found == "0 rows are missing or other than expected, 1 are not expected"


def test_states_of_a_stream_are_compared_row_by_row(data, tmp_path):
    """Each topic has every second change, and each state begins empty."""
    plan = plan_of(2, "each_batch")
    files = data.batch_files
    for n, table in enumerate(plan.tables):
        write_newest(files, tmp_path / table.name, f"cdc_offset % 2 = {n}")
    assert wrong_states(plan, files, tmp_path) == {}
    skipped = tmp_path / plan.tables[1].name
    write_newest(files, skipped, "false")
    assert [*wrong_states(plan, files, tmp_path)] == ["orders_1"]
    assert wrong_states(plan_of(2, "scheduled"), files, tmp_path) == {}


def write_newest(files: list[Path], folder: Path, condition: str) -> None:
    """Write each key's newest change of those with the condition, but for deletes."""
    changes = f"read_parquet({[str(file) for file in files]})"
    newest = f"SELECT max(cdc_offset) FROM {changes} WHERE {condition} GROUP BY id"
    rows = f"SELECT {COLUMNS} FROM {changes} WHERE cdc_op <> 'd' AND cdc_offset IN ({newest})"
    folder.mkdir(exist_ok=True)
    with duckdb.connect() as duck:
        duck.execute(f"COPY ({rows}) TO '{folder}/rows.parquet'")


def test_rows_are_compared_where_they_count(data, tmp_path):
    found = data.batch_files[0].parent
    assert same_rows(["id", "note"], data.batch_files, found) is None
    assert same_rows(["id"], data.batch_files[:1], found) is not None
    assert same_rows(["id"], data.batch_files[:1], found, "cdc_offset < 200") is None


MEASURED = {"measured": {"commit": "1234567", "at": "2026-01-01 00:00 UTC"}}
FIGURES = {"seconds": 1.0, "cpu_seconds": 1.0, "peak_mib": 1}


def run(contender: str, seconds: list[float], wrong: str | None = None, subject: str = "x") -> Run:
    figures = [{"seconds": s, "cpu_seconds": s, "peak_mib": 1} for s in seconds]
    return Run(contender, {"subject": subject}, wrong, figures)


def test_a_wrong_end_is_no_figure_and_meets_no_target():
    runs = [run("ours", [1.0]), run("bare", [9.0, 9.0], wrong="1 row is missing")]
    measure = worst_subject(runs, "ours", lambda _: {"bare": Bound(">=", 2)}).as_json()
    assert measure["peers"] == {"bare": "wrong: 1 row is missing"}
    assert measure["ratio"] == {"bare": None}
    assert not measure["met"]
    assert measure["runs"][1]["figures"] == []


def test_the_subject_counts_in_which_ours_is_worst():
    runs = [
        *(run("ours", [1.0, 5.0, 1.0], subject="a"), run("bare", [4.0], subject="a")),
        *(run("ours", [2.0], subject="b"), run("bare", [2.0], subject="b")),
    ]
    measure = worst_subject(runs, "ours", lambda _: {"bare": Bound(">=", 0.8)}).as_json()
    assert (measure["ours"], measure["ratio"], measure["met"]) == (2.0, {"bare": 1.0}, True)


def test_a_subject_without_a_target_is_shown_and_never_the_worst():
    runs = [run("ours", [9.0]), run("bare", [1.0]), run("ours", [1.0], subject="y")]
    runs.append(run("bare", [1.0], subject="y"))
    bounds = {"x": {}, "y": {"bare": Bound("<=", 1)}}
    measure = worst_subject(runs, "ours", lambda subject: bounds[subject])
    assert (measure.ours, len(measure.runs), measure.as_json()["met"]) == (1.0, 4, True)


def test_a_measure_takes_its_place_among_those_of_before(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.run.PROJECT", tmp_path)
    place = tmp_path / "results" / "full.json"
    for name, ours in (("P2", 1.0), ("P1", 2.0), ("P2", 3.0)):
        keep(place, name, {"ours": ours})
    kept = json.loads(place.read_text())
    assert list(kept["measures"].items()) == [("P1", {"ours": 2.0}), ("P2", {"ours": 3.0})]
    assert {"machine", "versions"} <= set(kept)


def test_a_version_that_was_measured_stays_when_its_jar_is_gone(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.run.PROJECT", tmp_path)
    place = tmp_path / "full.json"
    for found in ({"python": "3.11.6", "delta": "3.3.2"}, {"python": "3.11.7"}):
        monkeypatch.setattr("benchmarks.run.versions", lambda found=found: found)
        keep(place, "P1", {"ours": 1.0})
    kept = json.loads(place.read_text())
    assert kept["versions"] == {"python": "3.11.7", "delta": "3.3.2"}


def test_both_signs_are_kept():
    slower = Measure(ours=2.0, peers={"p": 1.0}, targets={"p": Bound("<=", 1.3)}, runs=[])
    assert slower.as_json()["ratio"] == {"p": 2.0}
    assert not slower.as_json()["met"]
    assert slower.as_json()["target"] == {"p": "<= 1.3x"}


def test_the_page_says_what_is_met_and_what_is_not_measured():
    targets = {"plain_merge": Bound(">=", 2.5), "delta": Bound(">=", 5)}
    runs = [run("ours", [1.0]), run("plain_merge", [2.4]), run("delta", [5.0])]
    measure = worst_subject(runs, "ours", lambda _: targets).as_json()
    text = page({"machine": {}, "versions": {}, "measures": {"P1": {**MEASURED, **measure}}})
    assert "| plain_merge | 1.00 | 2.40 | 2.40 | >= 2.5x | **no** |" in text
    assert "| delta | 1.00 | 5.00 | 5.00 | >= 5x | yes |" in text
    assert "Not measured yet in the full size: P2 (" in text


def test_the_page_says_what_growth_costs():
    def sized(rows: int, seconds: float, counting: float) -> Run:
        figures = {**FIGURES, "seconds": seconds, "counting": counting}
        return Run("ours", {"rows": rows}, None, [figures])

    runs = [sized(1_000_000, 0.5, 0.1), sized(11_000_000, 0.9, 0.4), sized(111_000_000, 5.0, 4.2)]
    bounds = {"small": Bound("<=", 1.3)}
    measure = Measure(ours=0.9, peers={"small": 0.5}, targets=bounds, runs=runs)
    kept = {**MEASURED, **measure.as_json()}
    text = page({"machine": {}, "versions": {}, "measures": {"P2": kept}})
    of_ten = "rows each further 10,000,000 rows take"
    assert f"From 1,000,000 to 11,000,000 {of_ten} 0.10 s more to apply to" in text
    assert f"From 11,000,000 to 111,000,000 {of_ten} 0.03 s more to apply to" in text
    assert "and 0.38 s more to count." in text


def test_the_page_says_who_spent_the_cpu_where_that_was_measured():
    kinds = [{"tasks": 1.0, "files": 2.5}, {"tasks": 30.0, "files": 0.0}, {"tasks": 2.0}]
    ours = Run("ours", {"subject": "x"}, None, [{**FIGURES, "cpu_by_kind": k} for k in kinds])
    targets = {"plain_merge": Bound(">=", 2.5)}
    runs = [ours, run("plain_merge", [3.0])]
    measure = worst_subject(runs, "ours", lambda _: targets).as_json()
    text = page({"machine": {}, "versions": {}, "measures": {"P1": {**MEASURED, **measure}}})
    assert "| contender | of | tasks of Spark or Flink | Iceberg's own threads |" in text
    assert "| ours | subject x | 2.0 | 0.0 |" in text
    assert "| plain_merge | subject x | 0" not in text


def test_the_page_says_where_one_batch_went():
    query = {"name": "upsert.py: reach_of", "began": 0.1, "ended": 0.3, "cpu_seconds": 0.25}
    spent = {"seconds": 1.0, "driver_alone": 0.8, "queries": [{**query, "tasks": 2}]}
    profile = {"versions": {"cdclake": "1234567"}, "profiles": {"P1": {"ours": spent}}}
    targets = {"plain_merge": Bound(">=", 2.5)}
    runs = [run("ours", [1.0]), run("plain_merge", [2.4])]
    measure = worst_subject(runs, "ours", lambda _: targets).as_json()
    results = {"machine": {}, "versions": {}, "measures": {"P1": {**MEASURED, **measure}}}
    text = page(results, profile)
    assert "| ours | upsert.py: reach_of | 0.10 | 0.30 | 0.25 | 2 |" in text
    assert "| ours | *no query: 0.80 s in all* | 0.00 | 1.00 |  |  |" in text


def test_the_page_gives_applying_and_counting_by_themselves() -> None:
    def timed(contender: str, applying: float, counting: float) -> Run:
        figures = {**FIGURES, "seconds": applying + counting, "counting": counting}
        return Run(contender, {"subject": "x"}, None, [figures])

    runs = [timed("ours", 0.5, 0.5), timed("hudi", 1.0, 8.0)]
    measure = worst_subject(runs, "ours", lambda _: {"hudi": Bound(">=", 1.5)}).as_json()
    text = page({"machine": {}, "versions": {}, "measures": {"P1": {**MEASURED, **measure}}})
    assert "| ours | subject x | 0.50 | 0.50 | - | - |" in text
    assert "| hudi | subject x | 1.00 | 8.00 | 2.00 | 16.00 |" in text


def test_the_page_says_whose_states_were_not_compared() -> None:
    run = {"tables": 1, "changes": 1, "cpu_seconds": [1.0]}
    none = {**run, "compared_states": 0}
    costs = {
        "N7": _cost([{**run, "compared_states": 1}]), "N7a": _cost([none]), "N8": _cost([run])
    }  # fmt: skip
    text = page({"machine": {}, "versions": {}, "measures": costs})
    assert "N7, N7a, N8: the stream creates the tables" in text
    assert "N7: after the last batch the rows of all changelogs were counted" in text
    assert "N7a, N8: only the number of rows in all changelogs" in text


@pytest.mark.parametrize("about", [{}, {"rows": "dropped"}])
def test_the_page_says_if_the_peer_of_decoding_kept_its_rows(about: dict[str, Any]) -> None:
    runs = [Run(who, {"subject": "x", **about}, None, [FIGURES]) for who in ("ours", "bare")]
    measure = worst_subject(runs, "ours", lambda _: {"bare": Bound(">=", 2)}).as_json()
    text = page({"machine": {}, "versions": {}, "measures": {"P4": {**MEASURED, **measure}}})
    assert (BARE_CACHED in text) is not bool(about)


def test_the_page_says_what_was_wrong_and_what_nobody_counted():
    runs = [run("ours", [1.0]), run("plain_merge", [3.0], wrong="2 rows are missing")]
    targets = {"plain_merge": Bound(">=", 2.5)}
    measure = worst_subject(runs, "ours", lambda _: targets).as_json()
    text = page(
        {"machine": {"cores": 2}, "versions": {}, "measures": {"P1": {**MEASURED, **measure}}}
    )
    assert "wrong: 2 rows are missing" in text
    assert (
        "| ours | subject x | 1.00 (1.00 to 1.00) | 1.0 | 1 | not counted | not counted |" in text
    )


def test_costs_follow_from_batches_of_different_sizes() -> None:
    def run(tables: int, changes: int, cpu: float) -> dict[str, Any]:
        return {"tables": tables, "changes": changes, "cpu_seconds": [cpu - 0.1, cpu, cpu + 5]}

    found = judged_costs(
        [run(1, 1000, 0.5), run(1, 101_000, 1.5), run(20, 1000, 1.45), run(20, 101_000, 2.6)],
        LOG_COST,
    )
    assert found["ours"]["us_per_change"] == 10
    assert found["ours"]["seconds_per_table"] == 0.05
    assert found["ours"]["changes_per_cpu_second"] == pytest.approx(101_000 / 1.5)
    assert found["met"]
    slower = judged_costs(
        [run(1, 1000, 0.5), run(1, 101_000, 2.5), run(20, 1000, 1.45), run(20, 101_000, 2.6)],
        LOG_COST,
    )
    assert not slower["met"]


def test_the_formula_follows_from_batches_of_different_sizes() -> None:
    def run(tables: int, changes: int, cpu: float) -> dict[str, Any]:
        return {"tables": tables, "changes": changes, "cpu_seconds": [cpu]}

    def runs(last: float) -> list[dict[str, Any]]:
        return [run(1, 0, 1.1), run(1, 100_000, 2.1), run(21, 0, 3.1), run(21, 100_000, last)]

    exact, other = fitted(runs(4.1)), fitted(runs(4.5))
    assert (exact.batch, exact.table, exact.change) == pytest.approx((1.0, 0.1, 1e-5))
    assert exact.error == pytest.approx(0)
    assert exact.of(10, 50_000) == pytest.approx(2.5)
    assert other.error == pytest.approx(0.1)
    text = page({"machine": {}, "versions": {}, "measures": {"N1": _cost(runs(4.1))}})
    assert "| 1.00 | 0.100 | 10.0 | 0.00 | 1; 21 | 0; 100,000 |" in text


def _cost(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {"measured": MEASURED["measured"], "ours": {}, "target": {}, "runs": runs}
