"""Records of `make prove`: kept, merged, and shown with their state."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults import run as faults
from tests.faults.catalogue import GROUPS
from tests.proofs import run
from tests.proofs.marked_tests import count_tests
from tests.proofs.page import PAGE, render_page, render_part
from tests.proofs.parts import FAULT_SEEDS, Part, Unit, all_parts
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
            assert result.succeeded, (part.name, name)


def test_results_are_written_and_read(tmp_path: Path) -> None:
    result = _result(passed=3, failed=0)
    write_results("p", {"unit": result}, tmp_path)
    assert read_results("p", tmp_path) == {"unit": result}
    assert read_results("other", tmp_path) == {}


@pytest.mark.parametrize(
    ("unit", "passed", "failed"), [(GOOD, 2, 0), (BAD, 1, 1), (SILENT, 0, 1)], ids=lambda u: str(u)
)
def test_run_unit_counts(unit: Unit, passed: int, failed: int) -> None:
    result = run.run_unit(unit, "engine")
    assert (result.passed, result.failed) == (passed, failed)


def test_a_part_goes_on_with_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, Result] = {}
    ran: list[str] = []

    def run_unit(unit: Unit, _: str) -> Result:
        ran.append(unit.name)
        return _result(passed=1, failed=0 if unit.name != "bad" else 1)

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


def test_an_added_test_is_not_proved_by_an_earlier_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    kept = {"good": _result(passed=1, failed=0)}
    monkeypatch.setattr(run, "read_results", lambda _: dict(kept))
    monkeypatch.setattr(run, "write_results", lambda _, results: kept.update(results))
    same = Part("p", "", (GOOD,))
    assert render_part(same, kept).endswith("| 1 of 1 | 1 | 2026-11-25 | `c` | complete |\n")
    grown = Part("p", "", (replace(GOOD, tests=2),))
    row = "| 0 of 1 | 0 | 2026-11-25 | `c` | incomplete, 1 with new tests |\n"
    assert render_part(grown, kept).endswith(row)
    monkeypatch.setattr(run, "say", ran.append)
    assert run.run_part(same, minutes=1) and ran == ["p: 1 units, failed: none"]
    assert run.run_part(grown, minutes=1) and ran[1].startswith("passed")
    assert render_part(grown, kept).endswith(" complete |\n")


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


def test_digest_changes_with_the_engine(tmp_path: Path) -> None:
    (tmp_path / "glue_jobs").mkdir()
    file = tmp_path / "glue_jobs" / "x.py"
    file.write_text("a")
    before = engine_digest(tmp_path)
    file.write_text("b")
    assert engine_digest(tmp_path) != before


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
