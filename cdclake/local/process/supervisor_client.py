"""Client of the supervisor: requests processes and waits until they are ready."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

from cdclake.errors import ComponentFailed
from cdclake.local.process.child_process import rotate
from cdclake.local.process.home import Home, is_locked, read_json, write_atomically
from cdclake.local.process.orphan_processes import COMPONENT_KEY, kill_orphans
from cdclake.local.process.process_spec import (
    Desired,
    Observed,
    ProcessStatus,
    ScheduledJob,
    Spec,
)
from cdclake.places import IMPORT_ROOT

SUPERVISOR = "supervisor"
SUPERVISOR_WAIT_S = 20.0
STOP_WAIT_S = 120.0
POLL_S = 0.05
LOG_TAIL_LINES = 20


@dataclass(frozen=True)
class Component:
    """Process with its health check: it is ready once `ready` returns True.

    `ready` may raise while the component is starting; the last reason becomes part of the error.
    """

    spec: Spec
    ready: Callable[[], bool]
    timeout_s: float = 60.0


def observe(home: Home) -> Observed:
    """Return the processes' states; without a supervisor, report them as dead."""
    alive = is_supervisor_alive(home)
    seen = Observed.from_json(read_json(home.observed_file), alive)
    if alive:
        return seen
    return replace(seen, components=tuple(_dead(each) for each in seen.components))


def is_supervisor_alive(home: Home) -> bool:
    """Check the supervisor's lock, which the kernel releases at its death; pids are reused."""
    try:
        with home.supervisor_lock.open() as lock:
            return is_locked(lock.fileno())
    except FileNotFoundError:
        return False


def ensure(home: Home, components: Sequence[Component]) -> Observed:
    """Start these processes where needed and wait until they are ready; leave the others alone.

    Raises:
        ComponentFailed: if a process dies or is not ready in time; with the end of its log.
    """
    desired = want(home, [component.spec for component in components])
    given_up = Event()
    with ThreadPoolExecutor(max_workers=max(1, len(components))) as pool:
        try:
            waits = [
                pool.submit(_await_ready, home, each, desired.generation, given_up)
                for each in components
            ]
            for wait in as_completed(waits):
                wait.result()
        except BaseException:  # the pool waits for its threads
            given_up.set()
            raise
    return observe(home)


def want(home: Home, specs: Sequence[Spec]) -> Desired:
    """Write the next generation with these specs, and wait until a supervisor has applied it."""
    desired = Desired.from_json(read_json(home.desired_file))
    if is_supervisor_alive(home):
        desired = desired.with_specs(tuple(specs))
        _write(home, desired)
    else:
        # Processes of the dead supervisor are dropped; the caller requests them again.
        desired = Desired(desired.generation).with_specs(tuple(specs))
        _write(home, desired)
        home.earlier_leases_file.touch(mode=0o600)
        _start_supervisor(home)
    _await_generation(home, desired.generation)
    return desired


def schedule(home: Home, jobs: Sequence[ScheduledJob]) -> None:
    """Have the running supervisor run these jobs on their schedules, and no others."""
    desired = Desired.from_json(read_json(home.desired_file)).with_scheduled(tuple(jobs))
    _write(home, desired)
    _await_generation(home, desired.generation)


def remove(home: Home, name: str) -> None:
    """Stop one process and keep the others running."""
    desired = Desired.from_json(read_json(home.desired_file)).without(name)
    _write(home, desired)
    if is_supervisor_alive(home):
        _await_generation(home, desired.generation)


def stop(home: Home) -> None:
    """Stop all processes and the supervisor, and end the orphans of a crashed supervisor.

    No file is written, so that a full disk cannot prevent it.
    """
    pid = _supervisor_pid(home)
    if pid is not None and is_supervisor_alive(home):
        os.kill(pid, signal.SIGTERM)
        _await_end(home, pid)
    kill_orphans(home.path)
    for file in (home.desired_file, home.observed_file, home.java_file):
        file.unlink(missing_ok=True)


def _await_ready(home: Home, component: Component, generation: int, given_up: Event) -> None:
    """Poll the health check until it succeeds; fail at once if the process dies."""
    name = component.spec.name
    deadline = time.monotonic() + component.timeout_s
    reason = "no answer yet"
    while time.monotonic() < deadline:
        try:
            if component.ready():
                return
        except Exception as err:  # clients raise various errors while their server starts
            reason = f"{type(err).__name__}: {err}".strip().splitlines()[0]
        _check_alive(home, name, generation)
        if given_up.wait(POLL_S):
            return
    raise failed(
        component.spec, f"{name} was not ready after {component.timeout_s:.0f} s ({reason})"
    )


def failed(spec: Spec, message: str) -> ComponentFailed:
    """Return the error of a failed process, with the end of its log."""
    return ComponentFailed(
        message,
        f"read its log {spec.log}, then run `cdclake up` again",
        component=spec.name,
        log_tail=log_tail(Path(spec.log)),
    )


def log_tail(log: Path) -> str:
    """Return the last lines of a log without reading all of it."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 16384))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-LOG_TAIL_LINES:])


def _check_alive(home: Home, name: str, generation: int) -> None:
    observed = observe(home)
    spec = Desired.from_json(read_json(home.desired_file)).spec(name)
    seen = observed.component(name)
    if spec is None or not observed.alive:
        raise _supervisor_failed(home, "the supervisor ended while components were starting")
    if observed.generation >= generation and (seen is None or seen.state in ("dead", "failed")):
        code = f" with exit code {seen.exit_code}" if seen and seen.exit_code is not None else ""
        raise failed(spec, f"{name} ended while it was starting{code}")


def _start_supervisor(home: Home) -> None:
    """Start the supervisor detached from the command, its terminal and its folder."""
    log = home.log(SUPERVISOR)
    rotate(log)
    env = {key: value for key, value in os.environ.items() if key != COMPONENT_KEY}
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "cdclake.local.process.supervisor", "--home", str(home.path)],
            cwd=IMPORT_ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + SUPERVISOR_WAIT_S
    while not is_supervisor_alive(home):
        if process.poll() is not None or time.monotonic() > deadline:
            raise _supervisor_failed(home, "the supervisor did not start")
        time.sleep(POLL_S)


def _await_generation(home: Home, generation: int) -> None:
    """Wait for a generation; stopping changed processes may take the full STOP_WAIT_S."""
    deadline = time.monotonic() + STOP_WAIT_S
    while observe(home).generation < generation:
        if not is_supervisor_alive(home):
            raise _supervisor_failed(home, "the supervisor ended")
        if time.monotonic() > deadline:
            raise _supervisor_failed(
                home, f"the supervisor did not respond within {STOP_WAIT_S:.0f} s"
            )
        time.sleep(POLL_S)


def _await_end(home: Home, pid: int) -> None:
    deadline = time.monotonic() + STOP_WAIT_S
    while is_supervisor_alive(home):
        if time.monotonic() > deadline:
            raise _supervisor_failed(home, f"the supervisor (pid {pid}) did not stop")
        time.sleep(POLL_S)


def _supervisor_failed(home: Home, message: str) -> ComponentFailed:
    log = home.log(SUPERVISOR)
    return ComponentFailed(
        message,
        f"read its log {log}, then run `cdclake up` again",
        component=SUPERVISOR,
        log_tail=log_tail(log),
    )


def _supervisor_pid(home: Home) -> int | None:
    try:
        return int(home.supervisor_lock.read_text())
    except (FileNotFoundError, ValueError):
        return None


def _write(home: Home, desired: Desired) -> None:
    write_atomically(home.desired_file, json.dumps(desired.to_json(), indent=1))


def _dead(seen: ProcessStatus) -> ProcessStatus:
    state = seen.state if seen.state in ("stopped", "failed") else "dead"
    return replace(seen, pid=None, state=state)
