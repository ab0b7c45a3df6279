"""A command that has failed keeps what it reports, and ends with an error and its exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cdclake.cli import main as command
from cdclake.jobs.verify.deep_comparison import DeepComparison
from cdclake.jobs.verify.report import TableComparison
from cdclake.local.health import assess_health

LINE: dict[str, Any] = {"seconds": 1.0, "rows_applied": 0, "error": None, "failed_rules": []} | {
    f"{what}_{when}": 1 for what in ("files", "bytes", "snapshots") for when in ("before", "after")
}
BROKEN = [{"rule": "in(status)", "rows": 2, "keys": []}]
SIZES: dict[str, Any] = {
    "redriven": {},
    "quarantined": {},
    "put_again": {},
    "kept": {},
    "too_large": {},
    "awaited": {},
}
REDRIVEN = {"ok": False, "dry_run": False, "objects": 1, "dropped": 0, **SIZES}
ERASED: dict[str, Any] = {
    "ok": True, "table": "orders", "keys": 1, "position": "p", "deleted_objects": 3, "stored": [],
    "erased": [{"where": "orders_changes", "what": "events", "count": 2}],
    "shared": [], "elsewhere": [], "redacted_files": [], "remaining": [],
}  # fmt: skip
Run = Callable[..., tuple[object, dict[str, Any], str]]


def job_report(**errors: Any) -> dict[str, Any]:
    """Return a job's report by table: the error, or the rules that failed, or None."""
    lines: list[dict[str, Any]] = []
    for name, error in errors.items():
        rules = error if isinstance(error, list) else []
        text = "quality rules failed: in(status)" if rules else error
        lines.append({"table": name, **LINE, "error": text, "failed_rules": rules})
    return {"ok": not any(errors.values()), "tables": lines}


def operated(**errors: str | None) -> dict[str, Any]:
    """Return the answer of an operation on tables."""
    lines = [
        {"table": name, "error": error, "did": f"nothing: {error}" if error else "replayed"}
        for name, error in errors.items()
    ]
    return {"ok": not any(errors.values()), "tables": lines}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command whose work answers with this."""
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "home"))

    def run_verb(work: str, answer: dict[str, Any], *words: str) -> tuple[object, Any, str]:
        module = sys.modules[f"cdclake.cli.{words[0]}"]
        monkeypatch.setattr(module, work, lambda *_, **__: answer)
        with pytest.raises(SystemExit) as caught:
            command.main(words)
        out, err = capsys.readouterr()
        return caught.value.code, json.loads(out) if "--json" in words else out, err

    return run_verb


@pytest.mark.parametrize(
    ("words", "work", "answer", "names"),
    [
        (("job", "apply_changes"), "_run_here", job_report(a="no file", b=None, c="x"), ("a, c",)),
        (("resync", "a"), "_resync_here", operated(a="late"), ("resync", "a")),
        (("replay",), "_replay_here", operated(a="stopped", b=None), ("replay", "a")),
        (("resume",), "_resume_here", operated(a="stopped", b=None), ("resume", "a")),
        (
            ("redrive",),
            "_redrive_local",
            REDRIVEN | {"kept": {"s3://b/k": 3}, "too_large": {"s3://b/l": 1}},
            ("4 records", "s3://b/k", "s3://b/l"),
        ),
        (
            ("redrive",),
            "_redrive_local",
            REDRIVEN | {"awaited": {"orders_changes": 2}},
            ("2 records", "orders_changes"),
        ),
    ],
)
def test_a_report_that_failed_has_an_error(
    run: Run,
    words: tuple[str, ...],
    work: str,
    answer: dict[str, Any],
    names: tuple[str, ...],
) -> None:
    code, shown, _ = run(work, answer, *words, "--json")
    error = shown.pop("error")
    assert (code, shown) == (4, answer)
    assert error["code"] and error["remedy"]
    assert all(name in error["message"] for name in names), error
    code, _, said = run(work, answer, *words)
    assert (code, said) == (4, f"error: {error['message']}\nremedy: {error['remedy']}\n")


def test_a_report_that_is_fine_has_none(run: Run) -> None:
    code, shown, said = run("_run_here", job_report(a=None), "job", "apply_changes", "--json")
    assert (code, shown, said) == (0, job_report(a=None), "")


def verified(*lines: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the report of a comparison that found an error or a difference in these tables."""
    equal = asdict(TableComparison(table="t", source="public.t"))
    found = [{**equal, **line} for line in lines]
    return {"ok": False, "tables": found, "sample": None, "rounds": 0, "seconds": 1.0, **more}


LATE = {"error": "the lake was behind", "late": True}
DEEP = asdict(DeepComparison(missing=1))


def test_changes_that_did_not_arrive_are_a_failure_if_nothing_differs(run: Run) -> None:
    answer = verified(LATE, {})
    code, shown, _ = run("_verify_here", answer, "verify", "--json")
    error = shown.pop("error")
    assert (code, shown, error["code"]) == (4, answer, "component_failed")
    assert error["message"] == "changes of t did not arrive" and "--wait" in error["remedy"]
    code, text, said = run("_verify_here", answer, "verify")
    assert code == 4 and "t: the lake was behind" in text and "error: changes of t" in said


@pytest.mark.parametrize(
    "answer",
    [
        verified({"missing": 1}),
        verified({**LATE, "missing": 1}),
        verified(LATE, {"different": 1}),
        verified(LATE, {"state": "stopped", "error": "stopped"}),
        verified(LATE, {"error": "the source no longer has the column 'a'"}),
        verified({**LATE, "deep": DEEP}),
        verified(LATE, puts=[{"puts": "p", "rows": {}, "failed": 0, "missing": 1, "dropped": 0}]),
    ],
)
def test_a_difference_is_no_failure(run: Run, answer: dict[str, Any]) -> None:
    assert run("_verify_here", answer, "verify", "--json")[:2] == (1, answer)


def part(name: str, state: str) -> dict[str, Any]:
    return {"name": name, "state": state, "pid": None, "port": None, "log": f"{name}.log"}


def status_of(*components: dict[str, Any]) -> dict[str, Any]:
    """Return the status of a lake without tables."""
    found: dict[str, Any] = {"components": list(components), "tables": [], "slot": None}
    return {**found, "file": "", **assess_health(found)}


def test_a_lake_that_is_down_is_a_failure_that_names_its_components(run: Run) -> None:
    answer = status_of(part("kafka", "dead"), part("connect", "failed"), part("aws", "running"))
    code, shown, _ = run("local_status", answer, "status", "--json")
    error = shown.pop("error")
    assert (code, shown) == (4, answer)
    assert (error["code"], error["component"]) == ("component_failed", "kafka")
    assert "kafka, connect" in error["message"] and "cdclake up" in error["remedy"]


def test_a_lake_that_needs_attention_is_no_failure(run: Run) -> None:
    code, shown, _ = run("local_status", status_of(part("kafka", "starting")), "status", "--json")
    assert (code, shown["health"]) == (1, "attention")
    assert "error" not in shown


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ({"a": BROKEN, "b": None}, 1),
        ({"a": BROKEN, "b": BROKEN}, 1),
        ({"a": BROKEN, "b": "a file is missing"}, 4),
        ({"a": "a file is missing"}, 4),
    ],
)
def test_broken_rules_alone_are_a_difference(run: Run, errors: dict[str, Any], code: int) -> None:
    answer = job_report(**errors)
    ended, shown, said = run("_run_here", answer, "job", "check_tables", "--json")
    error = shown.pop("error", None)
    assert (ended, shown, said) == (code, answer, "")
    assert (error is not None) == (code == 4)
    ended, _, said = run("_run_here", answer, "job", "check_tables")
    assert (ended, "error:" in said) == (code, code == 4)


def test_what_an_erasure_left_is_a_difference(run: Run) -> None:
    place = {"where": "s3://b/k (version 1)", "part": "JSON", "columns": ["id"]}
    answer = {**ERASED, "ok": False, "stored": [place]}
    words = ("forget", "orders", "1", "--yes")
    assert run("_erase_here", answer, *words, "--json") == (1, answer, "")
    code, shown, said = run("_erase_here", answer, *words)
    assert (code, "LEFT OVER" in str(shown), said) == (1, True, "")
