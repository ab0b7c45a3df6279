"""What a crashed run left behind: found by what each process carries, and ended.

Every process of a lake carries CDCLAKE_HOME and CDCLAKE_COMPONENT in its environment, which its
own children inherit. PostgreSQL's backends write their title over theirs, so they are known by
their working directory, the database's folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

HOME_KEY, COMPONENT_KEY, KEEPER_KEY = "CDCLAKE_HOME", "CDCLAKE_COMPONENT", "CDCLAKE_KEEPER"
KILL_WAIT_S = 5.0


def component_in(environ: Mapping[str, str], home: Path) -> str | None:
    """The component that a process with this environment belongs to, if it is of this home.

    A shell that merely exports CDCLAKE_HOME is nobody's component.
    """
    if environ.get(HOME_KEY) != str(home):
        return None
    return environ.get(COMPONENT_KEY) or None


def end_strays(home: Path, component: str | None = None, keeper: str | None = None) -> list[int]:
    """Kill this home's processes and return their pids, all gone when this returns.

    `component` and `keeper` (one supervisor's token) narrow the choice; without them the caller
    must know that no supervisor lives. SIGKILL at once: whoever lost its supervisor was to be
    killed anyway, and every component recovers from that.
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
    """Kill the processes of that name which work in `folder` (an orphaned database backend)."""

    def works_there(process: psutil.Process) -> bool:
        return process.name() == name and process.cwd() == str(folder)

    return _end(works_there)


def _end(chosen: Callable[[psutil.Process], bool]) -> list[int]:
    """Look again until nobody matches: a process may have forked between look and kill."""
    ended: list[int] = []
    deadline = time.monotonic() + KILL_WAIT_S
    while found := _matching(chosen):
        for process in found:
            try:
                process.kill()
                ended.append(process.pid)
            except psutil.NoSuchProcess:
                continue  # ended by itself, which is as good
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
            continue  # gone meanwhile, or another user's and so not ours
    return found
