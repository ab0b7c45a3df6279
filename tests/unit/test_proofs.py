"""Records of `make prove`: kept, merged, and shown with their state."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults import run as faults
from tests.faults.catalogue import ELSEWHERE, FAULTS, GROUPS
from tests.proofs import run
from tests.proofs.marked_tests import count_tests
from tests.proofs.page import PAGE, render_page, render_part
from tests.proofs.parts import FAULT_SEEDS, PROJECT, Part, Unit, all_parts
from tests.proofs.record import Result, engine_digest, read_results, write_results

GOOD = Unit("good", ("timeit", "-n", "1", "print('2 mutations, 0 not noticed')"))
BAD = Unit("bad", ("timeit", "-n", "1", "print('2 mutations, 1 not noticed')"))
SILENT = Unit("silent", ("timeit", "-n", "1", "1"))


def test_parts_have_distinct_units_of_files_that_exist() -> None:
    parts = all_parts()
    assert len({part.name for part in parts}) == len(parts)
    for part in parts:
        names = [unit.name for unit in part.units]
        assert names and len(set(names)) == len(names), part.name


def test_page_is_rendered_from_the_records() -> None:
    assert PAGE.read_text() == render_page(), "run `make docs`"


def test_recorded_units_passed_something() -> None:
    for part in all_parts():
        for name, result in read_results(part.name).items():
            assert not result.has_failed, (part.name, name)


def test_results_are_written_and_read(tmp_path: Path) -> None:
    result = _result(passed=3, failed=0)
    write_results("p", {"unit": result}, tmp_path)
    assert read_results("p", tmp_path) == {"unit": result}
    assert read_results("other", tmp_path) == {}


@pytest.mark.parametrize(
    ("unit", "passed", "failed"), [(GOOD, 2, 0), (BAD, 1, 1), (SILENT, 0, 1)], ids=lambda u: str(u)
)
def test_run_unit_counts(unit: Unit, passed: int, failed: int) -> None:
    result = run.run_unit(unit, "engine", "c")
    assert (result.passed, result.failed) == (passed, failed)


def test_a_part_goes_on_with_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, Result] = {}
    ran: list[str] = []

    def run_unit(unit: Unit, _: str, commit: str) -> Result:
        ran.append(unit.name)
        return _result(passed=1, failed=0 if unit.name != "bad" else 1)

    monkeypatch.setattr(run, "changed_files", lambda _: [])

    monkeypatch.setattr(run, "run_unit", run_unit)
    monkeypatch.setattr(run, "read_results", lambda _: dict(kept))
    monkeypatch.setattr(run, "write_results", lambda _, results: kept.update(results))
    part = Part("p", "", (GOOD, BAD))
    assert not run.run_part(part, minutes=0)
    assert ran == []
    assert not run.run_part(part, minutes=1)
    assert not run.run_part(part, minutes=1)
    assert ran == ["good", "bad", "bad"]
    assert run.run_part(Part("p", "", (GOOD,)), minutes=1)
    assert ran == ["good", "bad", "bad"]


MARKED = """
CASES = [pytest.param(1, marks=pytest.mark.slow), 2]

@pytest.fixture(params=[pytest.param("a", marks=pytest.mark.slow), "b"])
def place(request): ...

@pytest.mark.parametrize("case", CASES)
def test_cases(case): ...

def test_places(place): ...

@pytest.mark.slow
def test_long(): ...

def test_short(): "This is no mark.slow."
"""


def test_marked_tests_are_counted_by_function() -> None:
    assert count_tests(MARKED, "slow") == 3
    assert count_tests(MARKED, "synth") == 0
    assert count_tests(f"pytestmark = [pytest.mark.slow]\n{MARKED}", "slow") == 4


def test_every_unit_counts_its_tests() -> None:
    assert [unit.name for part in all_parts() for unit in part.units if unit.tests < 1] == []


@pytest.mark.parametrize("mark", ["slow", "synth"])
def test_every_marked_test_is_in_one_part(mark: str) -> None:
    texts = {file: file.read_text() for file in (PROJECT / "tests").rglob("test_*.py")}
    marked = {str(f.relative_to(PROJECT)) for f, text in texts.items() if count_tests(text, mark)}
    run_by: dict[str, set[str]] = {}
    for part in all_parts():
        for unit in part.units:
            words = unit.command
            selected = words[words.index("-m") + 1] if "-m" in words else ""
            if words[0] == "pytest" and selected in ("", mark):
                run_by.setdefault(words[-1].partition("::")[0], set()).add(part.name)
    assert marked
    assert {name: parts for name in marked if len(parts := run_by.get(name, set())) != 1} == {}


def test_an_added_test_is_not_proved_by_an_earlier_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    kept = {"good": _result(passed=1, failed=0)}
    monkeypatch.setattr(run, "changed_files", lambda _: [])
    monkeypatch.setattr(run, "read_results", lambda _: dict(kept))
    monkeypatch.setattr(run, "write_results", lambda _, results: kept.update(results))
    same = Part("p", "", (GOOD,))
    assert _row(same, kept) == "1 | 1 | 2026-11-25, `c` | 2026-11-25, `c` | -"
    grown = Part("p", "", (replace(GOOD, tests=2),))
    assert _row(grown, kept) == "1 | 0 | - | - | 1 with new tests"
    monkeypatch.setattr(run, "say", ran.append)
    assert run.run_part(same, minutes=1) and ran == ["p: 1 units, failed: none"]
    assert run.run_part(grown, minutes=1) and ran[1].startswith("passed")
    assert _row(grown, kept).endswith(" | -")


def test_faults_are_recorded_by_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "campaign.json"
    monkeypatch.setattr(faults, "RESULTS", file)
    for fault, seed, date in (("F2", 3, "a"), ("F1", 0, "b"), ("F2", 0, "c"), ("F2", 3, "d")):
        faults._record(fault, seed, {"date": date})
    recorded = {"F1": {"0": {"date": "b"}}, "F2": {"0": {"date": "c"}, "3": {"date": "d"}}}
    assert json.loads(file.read_text()) == recorded


def test_each_group_of_faults_is_a_unit_for_each_seed() -> None:
    [part] = [part for part in all_parts() if part.name == "faults"]
    commands = {unit.command for unit in part.units}
    assert ("tests.faults.run", "--group", "kills", "--seed", "4") in commands
    assert len(commands) == len(part.units) == len(GROUPS) * FAULT_SEEDS


def test_each_fault_of_the_matrix_is_injected_or_has_its_reason() -> None:
    injected = {fault.id for fault in FAULTS}
    matrix = {f"F{number}" for number in range(1, 41)}
    assert sorted(matrix - injected - ELSEWHERE.keys()) == []
    assert sorted(injected & ELSEWHERE.keys()) == []
    assert ELSEWHERE.keys() <= matrix
    named = re.findall(r"tests/[\w/]+(?:\.py)?", " ".join(ELSEWHERE.values()))
    assert [name for name in named if not (PROJECT / name).exists()] == []


@pytest.mark.parametrize(
    "name", ["glue_jobs/x.py", "lambda/x/x.py", "cdclake/ui/static/x.js", "requirements.lock"]
)
def test_digest_changes_with_the_engine(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("a")
    before = engine_digest(tmp_path)
    file.write_text("b")
    assert engine_digest(tmp_path) != before


def test_digest_is_of_sources_alone(tmp_path: Path) -> None:
    before = engine_digest(tmp_path)
    (tmp_path / "cdclake" / "__pycache__").mkdir(parents=True)
    (tmp_path / "cdclake" / "__pycache__" / "x.cpython-311.pyc").write_text("a")
    assert engine_digest(tmp_path) == before


def test_a_result_with_a_skipped_test_proves_nothing() -> None:
    skipped = replace(_result(passed=4, failed=0), skipped=1)
    assert not skipped.proves(1)
    assert _row(Part("p", "", (GOOD,)), {"good": skipped}).endswith("| - | 1 with skipped tests")


def test_run_unit_fails_a_unit_with_a_skipped_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_two.py").write_text(
        "import pytest\n\ndef test_a(): pass\n\n"
        "@pytest.mark.skip(reason='no Pagila')\ndef test_b(): pass\n"
    )
    said: list[str] = []
    monkeypatch.setattr(run, "say", said.append)
    command = ("pytest", "-q", "-ra", "--rootdir", str(tmp_path), str(tmp_path / "test_two.py"))
    result = run.run_unit(Unit("two", command), "engine", "c")
    assert (result.passed, result.failed, result.skipped) == (1, 0, 1)
    assert not result.succeeded
    assert said[0].endswith("1 passed, 0 failed, 1 skipped") and said[0].startswith("FAILED")
    assert "no Pagila" in said[1]


def test_the_page_has_the_range_of_commits_and_the_rest() -> None:
    part = Part("p", "", (GOOD, BAD, SILENT, Unit("other", ())))
    assert _row(part, {}) == "4 | 0 | - | - | 4 not run"
    new = _result(passed=1, failed=0)
    old = replace(new, date="2026-11-20", commit="old")
    results = {"good": new, "bad": replace(old, date="2026-11-19", commit="older"), "silent": old}
    ends = "2026-11-19, `older` | 2026-11-25, `c`"
    assert _row(part, results) == f"4 | 3 | {ends} | 1 not run"
    results["other"] = replace(old, commit="changed+")
    assert _row(part, results) == f"4 | 3 | {ends} | 1 on uncommitted files"
    results["other"] = old
    assert _row(part, results) == f"4 | 4 | {ends} | -"


def test_only_a_commit_without_changes_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PROJECT", tmp_path)
    (tmp_path / "docs" / "proofs").mkdir(parents=True)
    record, code = tmp_path / "docs" / "proofs" / "p.json", tmp_path / "code.py"
    code.write_text("1")
    run.git("init", "-q")
    _commit()
    commit = run.git("rev-parse", "HEAD")
    record.write_text("{}")
    assert run.changed_files(commit) == []
    _commit()
    record.write_text("{...}")
    assert run.changed_files(commit) == []
    code.write_text("2")
    (tmp_path / "new.py").write_text("3")
    assert run.changed_files(commit) == ["code.py", "new.py"]
    kept: list[str] = []
    monkeypatch.setattr(run, "read_results", lambda _: {})
    monkeypatch.setattr(run, "write_results", lambda name, _: kept.append(name))
    said: list[str] = []
    monkeypatch.setattr(run, "say", said.append)
    assert not run.run_part(Part("p", "", (GOOD,)), minutes=1)
    assert "code.py, new.py\nCommit or remove" in said[0] and len(said) == 1
    (tmp_path / "new.py").unlink()
    code.write_text("1")
    writes = Unit("writes", ("timeit", "-n", "1", "-r", "1", "open('code.py', 'w')"))
    assert not run.run_part(Part("p", "", (writes,)), minutes=1)
    assert "differ from commit" in said[-1]
    assert kept == []


def _commit() -> None:
    run.git("add", "-A")
    run.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "c")


def _row(part: Part, results: dict[str, Result]) -> str:
    return render_part(part, results).removesuffix(" |\n").split("|", 3)[3].strip()


def _result(*, passed: int, failed: int) -> Result:
    return Result(
        date="2026-11-25",
        commit="c",
        engine=engine_digest(),
        seconds=1.0,
        tests=1,
        passed=passed,
        failed=failed,
        skipped=0,
    )
