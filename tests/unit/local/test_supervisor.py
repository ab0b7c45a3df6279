"""The supervisor with small processes: start, die, heal, change, stop, and its own death."""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest

from cdclake.errors import ComponentFailed
from cdclake.local.lake.process_watch import undo_on_error
from cdclake.local.process import child_process, supervisor, supervisor_client
from cdclake.local.process.home import Home, write_atomically
from cdclake.local.process.orphan_processes import component_in
from cdclake.local.process.process_spec import Desired, ProcessStatus, Spec
from cdclake.local.process.supervisor_client import Component

# Starts a grandchild in a session of its own, as a Spark driver may, and waits.
PARENT = (
    "import subprocess, time;"
    "subprocess.Popen(['sleep', '600'], start_new_session=True);"
    "time.sleep(600)"
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    found = Home(tmp_path / "home")
    found.create()
    yield found
    supervisor_client.stop(found)


def spec(home: Home, name: str, *argv: str, **more: Any) -> Spec:
    return Spec(
        name,
        argv or ("sleep", "600"),
        {"PATH": os.environ["PATH"]},
        log=str(home.log(name)),
        **more,
    )


def run(
    home: Home, *specs: Spec, ready: Callable[[], bool] = lambda: True
) -> dict[str, ProcessStatus]:
    observed = supervisor_client.ensure(
        home, [Component(each, ready, timeout_s=5) for each in specs]
    )
    return {seen.name: seen for seen in observed.components}


def state(home: Home, name: str) -> str:
    seen = supervisor_client.observe(home).component(name)
    return seen.state if seen else "absent"


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def left_over(home: Home) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            alive = process.status() != psutil.STATUS_ZOMBIE
            if alive and component_in(process.environ(), home.path):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_the_dead_stays_dead_until_asked_for(home: Home) -> None:
    first = run(home, spec(home, "a"), spec(home, "b"))
    assert first["a"].pid is not None
    os.kill(first["a"].pid, signal.SIGKILL)
    wait_until(lambda: state(home, "a") == "dead")
    dead = supervisor_client.observe(home).component("a")
    assert dead is not None and dead.pid is None and dead.exit_code == -signal.SIGKILL
    run(home, spec(home, "b"))
    assert state(home, "a") == "dead", "asking for b is not asking for a"
    second = run(home, spec(home, "a"), spec(home, "b"))
    assert second["a"].state == "running" and second["a"].pid != first["a"].pid
    assert second["b"].pid == first["b"].pid


def test_a_changed_spec_restarts_that_process_alone(home: Home) -> None:
    first = run(home, spec(home, "a"), spec(home, "b"))
    second = run(home, spec(home, "a", "sleep", "601"))
    assert second["a"].pid != first["a"].pid
    assert second["b"].pid == first["b"].pid


def test_another_shell_restarts_no_process(home: Home) -> None:
    first = run(home, spec(home, "a"))
    second = run(home, spec(home, "a", shell={"PATH": f"/tmp:{os.environ['PATH']}"}))
    assert second["a"].pid == first["a"].pid


def test_a_process_writes_files_for_its_owner_alone(home: Home) -> None:
    file = home.run / "written"
    run(home, spec(home, "a", "/bin/sh", "-c", f"echo x > {file}; exec sleep 600"))
    wait_until(file.exists)
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_failed_command_stops_what_it_has_started(home: Home) -> None:
    with pytest.raises(KeyboardInterrupt), undo_on_error(home):
        run(home, spec(home, "a"))
        raise KeyboardInterrupt
    assert left_over(home) == [] and not supervisor_client.is_supervisor_alive(home)
    first = run(home, spec(home, "a"))["a"]
    assert first.pid is not None
    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: state(home, "a") == "dead")
    with pytest.raises(KeyboardInterrupt), undo_on_error(home):
        run(home, spec(home, "a"), spec(home, "b"))
        raise KeyboardInterrupt
    assert (state(home, "a"), state(home, "b")) == ("running", "absent")


def test_a_command_tells_what_it_has_changed(home: Home) -> None:
    with undo_on_error(home) as did:
        run(home, spec(home, "a"))
    assert did == ["started a"]
    with undo_on_error(home) as did:
        run(home, spec(home, "a"))
    assert did == []


def test_a_removed_process_stops_with_what_it_started(home: Home) -> None:
    run(home, spec(home, "a", sys.executable, "-c", PARENT), spec(home, "b"))
    wait_until(lambda: len(left_over(home)) == 3)
    supervisor_client.remove(home, "a")
    assert state(home, "a") == "absent"
    assert [process.name() for process in left_over(home)] == ["sleep"]


def test_everything_ends_with_the_supervisor(home: Home) -> None:
    run(home, spec(home, "a", sys.executable, "-c", PARENT), spec(home, "b"))
    wait_until(lambda: len(left_over(home)) == 3)
    pid = supervisor_client.observe(home).supervisor_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not left_over(home))
    observed = supervisor_client.observe(home)
    assert not observed.alive
    assert [(seen.state, seen.pid) for seen in observed.components] == [("dead", None)] * 2
    assert run(home, spec(home, "a"))["a"].state == "running"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_process_of_another_user_ends_with_the_supervisor_too(home: Home) -> None:
    seen = run(home, spec(home, "a", user="nobody"))["a"]
    assert seen.pid is not None
    assert psutil.Process(seen.pid).username() == "nobody"
    pid = supervisor_client.observe(home).supervisor_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    # Before the watchdog's time: the kernel's own signal, which a change of user clears.
    wait_until(lambda: not psutil.pid_exists(seen.pid or 0) or not left_over(home), seconds=2)


def test_a_process_that_ends_while_starting_fails_with_its_log(home: Home) -> None:
    broken = spec(home, "a", "sh", "-c", "echo no space left; exit 3")
    with pytest.raises(ComponentFailed) as caught:
        run(home, broken, ready=lambda: False)
    assert caught.value.component == "a"
    assert "exit code 3" in caught.value.message
    assert caught.value.log_tail == "no space left"


def test_a_program_that_is_not_there_fails(home: Home) -> None:
    with pytest.raises(ComponentFailed) as caught:
        run(home, spec(home, "a", "/no/such/program"), ready=lambda: False)
    assert "/no/such/program" in caught.value.log_tail


def test_a_wait_that_runs_out_says_why(home: Home) -> None:
    def refuse() -> bool:
        raise ConnectionError("connection refused")

    with pytest.raises(ComponentFailed, match=r"not ready after 1 s .*connection refused"):
        supervisor_client.ensure(home, [Component(spec(home, "a"), refuse, timeout_s=1)])
    assert state(home, "a") == "running"


def test_what_ignores_the_polite_signal_is_killed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "STOP_WAIT_S", 0.5)
    keeping = supervisor.Supervisor(home, lock=-1)
    own = Spec(
        "c",
        ("sh", "-c", "trap '' TERM; echo trapped; sleep 600 & wait; wait"),
        dict(os.environ),
        log=str(home.log("c")),
    )
    child = keeping.children["c"] = child_process.start(own, home.path, "token")
    wait_until(lambda: "trapped" in home.log("c").read_text())
    keeping.stop(["c"])
    assert child.process is not None and child.process.returncode == -signal.SIGKILL


def test_two_supervisors_cannot_keep_one_home(home: Home) -> None:
    run(home, spec(home, "a"))
    before = supervisor_client.observe(home)
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(ComponentFailed, match="did not start"),
    ):
        patch.setattr(supervisor_client, "is_supervisor_alive", lambda _home: False)
        supervisor_client._start_supervisor(home)
    assert supervisor_client.observe(home) == before


@pytest.mark.slow
def test_a_removed_home_takes_its_processes_along(home: Home) -> None:
    run(home, spec(home, "a"))
    shutil.rmtree(home.path)
    wait_until(lambda: not left_over(home))
    home.create()
    assert run(home, spec(home, "a"))["a"].state == "running"
    time.sleep(1)
    assert state(home, "a") == "running", "the old supervisor keeps out of the new home"


def test_a_shell_with_the_home_exported_is_not_ours(home: Home) -> None:
    assert component_in({"CDCLAKE_HOME": str(home.path)}, home.path) is None
    tagged = {"CDCLAKE_HOME": str(home.path), "CDCLAKE_COMPONENT": "kafka"}
    assert component_in(tagged, home.path) == "kafka"
    assert component_in(tagged, home.path / "other") is None


def test_desired_generations() -> None:
    a, b = Spec("a", ("1",)), Spec("b", ("2",))
    both = Desired().with_specs((a, b))
    changed = both.with_specs((Spec("a", ("3",)),))
    assert [each.argv for each in changed.specs] == [("3",), ("2",)]
    assert (changed.generation, changed.start) == (2, ("a",))
    assert changed.without("b").specs == (Spec("a", ("3",)),)
    assert Desired.from_json(changed.to_json()) == changed


def test_interrupted_start_does_not_wait_for_a_component_that_hangs(home: Home) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(home, spec(home, "hangs"), ready=_interrupting())
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 4  # of 5


def _interrupting() -> Callable[[], bool]:
    def ready() -> bool:
        if next(asked) == 3:  # the caller waits then
            os.kill(os.getpid(), signal.SIGINT)
        return False

    asked = count()
    return ready


def test_failed_component_is_reported_before_another_is_late(home: Home) -> None:
    late, failing = spec(home, "late"), spec(home, "failing", "false")
    began = time.monotonic()
    with pytest.raises(ComponentFailed, match="failing ended"):
        run(home, late, failing, ready=lambda: False)
    assert time.monotonic() - began < 4  # of 5


def test_processes_stay_if_a_newer_version_requests_some(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    keeping = supervisor.Supervisor(home, lock=-1)
    keeping.reconcile(Desired().with_specs((spec(home, "a"),)))
    newer = Desired(1).with_specs((spec(home, "b"),)).to_json()
    newer["specs"][0]["priority"] = 1
    write_atomically(home.desired_file, json.dumps(newer))
    keeping.reconcile_when_new()
    assert keeping.children["a"].alive and "newer version of cdclake" in capsys.readouterr().out
    keeping.stop(["a"])
