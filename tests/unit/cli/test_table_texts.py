"""Texts of answers by table: `verify`, jobs, `resume` and `replay`."""

from __future__ import annotations

from typing import Any

from cdclake.cli.table_answers import did_lines, job_lines, listed, replay_total
from cdclake.cli.verify_text import verify_lines

COMPARED: dict[str, Any] = {
    "table": "t", "source": "public.t", "source_rows": 1000, "lake_rows": 1000, "missing": 0,
    "extra": 0, "different": 0, "unsettled": 0, "withheld": 0, "quarantined": 0,
    "state": "streaming", "error": None, "omitted_columns": [], "first": [], "deep": None,
}  # fmt: skip
JOB: dict[str, Any] = {
    "table": "t", "seconds": 1.25, "rows_applied": 0, "files_before": 9, "files_after": 2,
    "bytes_before": 2000, "bytes_after": 1500, "snapshots_before": 4, "snapshots_after": 4,
    "error": None,
}  # fmt: skip


def report(*tables: dict[str, Any], ok: bool = True, **more: Any) -> dict[str, Any]:
    named = [{**COMPARED, "table": f"t{n}", **table} for n, table in enumerate(tables)]
    return {"ok": ok, "tables": named, "sample": None, "rounds": 0, "seconds": 3.2, **more}


def test_equal_tables_take_one_line() -> None:
    assert list(verify_lines(report({}, {}, {}), False)) == [
        "equal: 3 tables, 3,000 rows in the source, compared in 3.2 s"
    ]


def test_differing_table_is_shown_with_its_rows_and_the_totals() -> None:
    example: dict[str, Any] = {
        "kind": "different", "key": {"id": 7}, "columns": ["v"], "source": {"v": 1},
        "lake": {"v": 2},
    }  # fmt: skip
    lines = list(
        verify_lines(report({}, {"different": 1, "first": [example]}, ok=False, rounds=2), False)
    )
    assert [line.split()[:4] for line in lines[2:4]] == [
        ["t1", "DIFFERENT", "1,000", "1,000"],
        ["all", "2", "tables", "2,000"],
    ]
    assert lines[4:6] == ["t1: different id=7", "    v: source 1, lake 2"]
    assert lines[-1].startswith("NOT equal: 2 tables") and "2 further readings" in lines[-1]


def test_a_late_table_is_not_called_different_or_stopped() -> None:
    late = {"state": "streaming", "missing": 3, "error": "3 records have not arrived"}
    [_, _, line, *_] = verify_lines(report({}, late, ok=False), False)
    assert line.split()[:2] == ["t1", "error"]


def test_stopped_and_quarantined_tables_deviate_and_omitted_columns_do_not() -> None:
    lines = list(
        verify_lines(
            report(
                {"state": "stopped", "error": "no column x"},
                {"quarantined": 2},
                {"omitted_columns": ["total"]},
            ),
            False,
        )
    )
    assert [line.split()[1] for line in lines[2:4]] == ["STOPPED", "equal"]
    assert "t0: no column x" in lines and any("2 events in the quarantine" in x for x in lines)
    assert not any("total" in line for line in lines)
    assert "t2: without total" in list(
        verify_lines(report({}, {}, {"omitted_columns": ["total"]}), True)
    )


def test_deep_differences_deviate() -> None:
    kinds = ("missing", "extra", "different", "doubled_rows", "doubled_events")
    deep: dict[str, Any] = dict.fromkeys((*kinds, "history_missing", "history_different"), 0) | {
        "first": []
    }
    assert len(list(verify_lines(report({"deep": deep}), False))) == 1
    lines = list(verify_lines(report({"deep": deep | {"doubled_events": 4}}), False))
    assert "  4 events are in t0_changes more than once" in lines


def test_rows_that_are_not_known_are_no_sum() -> None:
    broken = {"source_rows": None, "lake_rows": None, "error": "no such table"}
    lines = list(verify_lines(report({}, broken, ok=False), False))
    assert lines[2].split()[:4] == ["t1", "error", "-", "-"]


def test_job_that_succeeds_says_what_it_changed() -> None:
    [line] = job_lines({"tables": [JOB, JOB | {"rows_applied": 5}]}, False)
    assert line == "2 tables in 2.5 s: 5 rows applied, 18 -> 4 files, 4.0 kB -> 3.0 kB"
    still = JOB | {"files_after": 9, "bytes_after": 2000}
    assert list(job_lines({"tables": [still]}, False)) == ["1 table in 1.2 s: nothing to change"]
    assert list(job_lines({"tables": []}, False)) == []


def test_job_shows_failed_tables_and_with_verbose_all() -> None:
    answer = {"tables": [JOB, JOB | {"table": "bad", "error": "it is stopped"}]}
    lines = list(job_lines(answer, False))
    assert lines[2].split()[0] == "bad" and "  bad: it is stopped" in lines
    assert lines[-1].endswith("; 1 table failed")
    assert [line.split()[0] for line in job_lines(answer, True)][2:5] == ["t", "bad", "total"]


def test_tables_with_one_outcome_share_a_line() -> None:
    tables: list[dict[str, Any]] = [{"table": f"t{n}", "did": "flows"} for n in range(8)]
    tables.append({"table": "s", "did": "replayed 3, 2 still refused", "replayed": 3,
                   "refused": {"no": 2}})  # fmt: skip
    lines = list(did_lines(tables, False))
    assert lines[0] == "t0, t1, t2, t3 and 4 more: flows"
    assert lines[1:] == ["s: replayed 3, 2 still refused", "  s: 2 x no"]
    assert len(list(did_lines(tables, True))) == 2 + 9 + 1
    assert replay_total(tables) == "9 tables: 3 events replayed, 2 events refused again"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c, d, e"
