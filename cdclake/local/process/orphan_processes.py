"""Orphaned processes of a crashed run: found by their environment, and killed.

Every process of a lake has CDCLAKE_HOME and CDCLAKE_COMPONENT in its environment, and its children
inherit them. PostgreSQL's backends overwrite theirs with the process title, so they are recognized
by their working directory, the database's folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

HOME_KEY, COMPONENT_KEY, KEEPER_KEY = "CDCLAKE_HOME", "CDCLAKE_COMPONENT", "CDCLAKE_KEEPER"
KILL_WAIT_S = 5.0


def component_in(environ: Mapping[str, str], home: Path) -> str | None:
    """Return the component of this home that a process with this environment belongs to.

    A shell that merely exports CDCLAKE_HOME belongs to no component.
    """
    if environ.get(HOME_KEY) != str(home):
        return None
    return environ.get(COMPONENT_KEY) or None


def environments(home: Path) -> list[dict[str, str]]:
    """Return the environment of each living process of this home."""
    found = []
    for process in _matching(lambda each: component_in(each.environ(), home) is not None):
        with suppress(psutil.NoSuchProcess):  # it has ended since
            found.append(process.environ())
    return found


def kill_orphans(home: Path, component: str | None = None, keeper: str | None = None) -> list[int]:
    """Kill this home's processes, wait until they are gone, and return their pids.

    `component` and `keeper` (a supervisor's token) restrict the choice; without them the caller
    must make sure that no supervisor is alive. The signal is SIGKILL: processes without supervisor
    must end in any case, and every component recovers from it.
    """

    def ours(process: psutil.Process) -> bool:
        if process.pid == os.getpid():
            return False
        environ = process.environ()
        name = component_in(environ, home)
        if keeper is not None and environ.get(KEEPER_KEY) != keeper:
            return False
        return name is not None and component in (None, name)

    return _end(ours)


def end_processes_in(folder: Path, name: str) -> list[int]:
    """Kill the processes with this name and working directory (orphaned database backends)."""

    def works_there(process: psutil.Process) -> bool:
        return process.name() == name and process.cwd() == str(folder)

    return _end(works_there)


def _end(chosen: Callable[[psutil.Process], bool]) -> list[int]:
    """Kill matching processes until none is left: one may fork between search and kill."""
    ended: list[int] = []
    deadline = time.monotonic() + KILL_WAIT_S
    while found := _matching(chosen):
        for process in found:
            try:
                process.kill()
                ended.append(process.pid)
            except psutil.NoSuchProcess:
                continue  # ended by itself
        psutil.wait_procs(found, timeout=1.0)
        if time.monotonic() > deadline:
            break
    return ended


def _matching(chosen: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and chosen(process):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue  # gone meanwhile, or of another user and so not of this lake
    return found
