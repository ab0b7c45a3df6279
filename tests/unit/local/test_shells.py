"""What a process is compared by: never the shell that a command was started in."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from cdclake.errors import InputError
from cdclake.local.components import aws, installed, kafka, postgres
from cdclake.local.process.home import Home
from cdclake.local.process.process_changes import Processes
from cdclake.local.process.process_spec import Desired, Observed, ProcessStatus, Spec


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.create()
    return found


@pytest.mark.parametrize("part", [aws, kafka, postgres])
def test_another_shell_restarts_nothing(home, tmp_path, monkeypatch, part):
    monkeypatch.setattr(installed, "is_supervisor_alive", lambda _: True)
    before = part.component(home, 1).spec
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    after = part.component(home, 1).spec
    assert before.shell != after.shell
    assert before.differences(after) == ()
    assert before.differences(Spec.from_json(json.loads(json.dumps(asdict(after))))) == ()


def test_the_java_of_a_running_lake_is_chosen_once(home, tmp_path, monkeypatch):
    chosen = installed.java(home)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match="JAVA_HOME"):
        installed.java(home)
    monkeypatch.setattr(installed, "is_supervisor_alive", lambda _: True)
    assert installed.java(home) == chosen
    home.java_file.write_text(str(tmp_path / "gone"))
    with pytest.raises(InputError, match="JAVA_HOME"):
        installed.java(home)


def test_no_component_gets_a_java_that_spark_does_not_start_on(home, tmp_path, monkeypatch):
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"25.0.1\" 2025-10-21 LTS' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match="Java 25 is too new") as refused:
        kafka.component(home, 1)
    assert "JDK 17" in refused.value.remedy
    assert not home.java_file.exists()


def test_postgres_restarts_for_its_port_data_or_binary_alone(home, monkeypatch):
    before = postgres.component(home, 1).spec
    monkeypatch.setitem(postgres.SETTINGS, "max_connections", "200")
    assert before.differences(postgres.component(home, 1).spec) == ()
    assert before.differences(postgres.component(home, 2).spec) == ("its port changed from 1 to 2",)
    moved = replace(before, identity=("elsewhere", before.identity[1]))
    assert before.differences(moved) == ("its program or its data folder changed",)


def test_a_restart_names_its_reasons_without_values():
    old = Spec("a", ("run", "x"), {"KEY": "secret-1", "B": "1"})
    new = Spec("a", ("walk", "y"), {"KEY": "secret-2", "B": "1"})
    reasons = old.differences(new)
    assert len(reasons) == 3
    assert "KEY" in reasons[2] and "secret" not in str(reasons) and "B" not in reasons[2]


def seen(**pids: int | None) -> Observed:
    parts = (ProcessStatus(name, pid, "running", None, "") for name, pid in pids.items())
    return Observed(1, 1, tuple(parts), alive=True)


def processes(*specs: Spec, **pids: int | None) -> Processes:
    return Processes(Desired(1, specs), seen(**pids))


def test_changes_of_processes_are_told_with_their_reason():
    a, b, c = (Spec(name, ("x",)) for name in "abc")
    before = processes(a, b, c, a=1, b=2, c=None)
    assert before.changes(before) == []
    after = processes(a, replace(b, port=3), c, Spec("d", ("x",)), a=1, b=5, c=6, d=7)
    assert before.changes(after) == [
        "restarted b: its port changed from None to 3",
        "started c, which was dead",
        "started d",
    ]
    assert before.changes(processes(a, c, a=1, c=None)) == ["stopped b"]


def test_components_leave_no_file_to_others(home):
    old = os.umask(0o022)
    try:
        folder = home.private_data("spark")
        folder.chmod(0o755)
        assert home.private_data("spark").stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(old)
