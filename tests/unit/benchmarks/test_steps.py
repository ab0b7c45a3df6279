"""Steps of a long measure: kept between commands, by code, and begun only in time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import machine, run
from benchmarks.results import Bound, Measure, Run
from benchmarks.steps import Steps, Unfinished


def steps(folder: Path, code: str = "a", until: float = float("inf")) -> Steps:
    return Steps(folder / "steps" / "P6.json", code, until)


def refuse() -> None:
    raise AssertionError("the step was taken again")


def test_a_step_is_taken_once_by_all_commands_of_the_same_code(tmp_path: Path) -> None:
    assert steps(tmp_path).take("rate", lambda: {"seconds": 7.8}) == {"seconds": 7.8}
    assert steps(tmp_path).take("rate", refuse) == {"seconds": 7.8}
    assert steps(tmp_path, code="b").take("rate", lambda: {"seconds": 8.1}) == {"seconds": 8.1}
    assert steps(tmp_path).take("rate", lambda: "a new one") == "a new one"


def test_a_complete_measure_is_taken_anew(tmp_path: Path) -> None:
    done = steps(tmp_path)
    done.take("rate", lambda: 1)
    done.end()
    done.end()
    assert steps(tmp_path).take("rate", lambda: 2) == 2


def test_each_command_takes_a_step_and_begins_no_other_too_late(tmp_path: Path) -> None:
    late = steps(tmp_path, until=0.0)
    assert late.take("rate", lambda: 1) == 1
    with pytest.raises(Unfinished, match="near"):
        late.take("near", refuse)
    again = steps(tmp_path, until=0.0)
    assert (again.take("rate", refuse), again.take("near", lambda: 2)) == (1, 2)


def test_a_command_without_time_is_repeated_until_the_measure_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(_size: object, _work: Path, taken: Steps) -> Measure:
        seconds = [taken.take(name, lambda: 2.0) for name in ("near", "far")]
        figures = [{"seconds": each} for each in seconds]
        runs = [Run("ours", {"subject": "s"}, None, figures)]
        return Measure(ours=sum(seconds), peers={"goal": 5.0}, targets={"goal": Bound("<=", 1)},
                       runs=runs)  # fmt: skip

    monkeypatch.setattr(run, "WORK", tmp_path)
    monkeypatch.setattr(run, "PROJECT", tmp_path)
    monkeypatch.setitem(run.STEPPED, "P6", measure)
    monkeypatch.setattr(sys, "argv", ["run", "tiny", "P6", "--minutes", "0"])
    assert run.main() == 3
    assert not (tmp_path / "tiny.json").exists()
    assert run.main() == 0
    assert '"met": true' in (tmp_path / "tiny.json").read_text()
    assert not (tmp_path / "tiny" / "steps" / "P6.json").exists()


def test_a_word_that_is_no_measure_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run", "tiny", "P60"])
    with pytest.raises(SystemExit, match="2"):
        run.main()
    assert "P60 is no measure" in capsys.readouterr().err


def test_the_code_is_that_which_a_measure_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "PROJECT", tmp_path)
    engine, text = tmp_path / "glue_jobs" / "engine.py", tmp_path / "README.md"
    engine.parent.mkdir()
    for file in (engine, text):
        file.write_text("1")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    first = machine.code_digest()
    text.write_text("2")
    assert machine.code_digest() == first
    engine.write_text("2")
    assert machine.code_digest() != first
