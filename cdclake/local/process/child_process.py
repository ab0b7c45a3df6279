"""Child processes of the supervisor: they die with it, and stop with all their descendants."""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cdclake.local.process.orphan_processes import COMPONENT_KEY, HOME_KEY, KEEPER_KEY
from cdclake.local.process.process_spec import ProcessStatus, Spec, State

PR_SET_PDEATHSIG = 1
LOG_LIMIT_BYTES = 20 * 1024 * 1024
LIBC = ctypes.CDLL(None, use_errno=True)  # looked up before any fork


@dataclass
class Child:
    """Child process and its outcome; `process` is None if it could not be started."""

    spec: Spec
    process: subprocess.Popen[bytes] | None
    started_at: float
    accepts: bool = False
    stopped: bool = False
    reason: str = ""

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self.process is not None and self.process.poll() is None

    def seen(self) -> ProcessStatus:
        """Return the current status."""
        return ProcessStatus(
            name=self.spec.name,
            pid=self.process.pid if self.process and self.alive else None,
            state=self._state(),
            port=self.spec.port,
            log=self.spec.log,
            started_at=self.started_at,
            exit_code=self.process.poll() if self.process else None,
        )

    def _state(self) -> State:
        if self.process is None:
            return "failed"
        if self.alive:
            return "running" if self.accepts or self.spec.port is None else "starting"
        return "stopped" if self.stopped else "dead"


def start(spec: Spec, home: Path, keeper: str) -> Child:
    """Start a child in a new session, with its own log and the lake's marks in its environment."""
    tags = {HOME_KEY: str(home), COMPONENT_KEY: spec.name, KEEPER_KEY: keeper}
    account = pwd.getpwnam(spec.user) if spec.user else None
    try:
        rotate(Path(spec.log))
        with Path(spec.log).open("ab") as log:
            process = subprocess.Popen(
                spec.argv,
                env={**spec.shell, **spec.env, **tags},
                cwd=spec.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o077,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
                preexec_fn=dying_with(os.getpid(), signal.Signals[spec.death_signal]),
            )
    except (OSError, subprocess.SubprocessError) as err:
        with suppress(OSError), Path(spec.log).open("ab") as log:  # the disk may be full
            log.write(f"cdclake could not start {spec.argv[0]}: {err}\n".encode())
        return Child(spec, None, time.time(), reason=str(err))
    return Child(spec, process, time.time())


def ask_to_stop(child: Child) -> None:
    """Send the stop signal to the process, which then ends its own children."""
    child.stopped = True
    if child.process is not None and child.alive:
        child.process.send_signal(signal.Signals[child.spec.stop_signal])


def kill_group(child: Child) -> None:
    """Kill a child that does not stop; only while it lives, since its pid may be reused later."""
    if child.process is not None and child.alive:
        os.killpg(child.process.pid, signal.SIGKILL)
        child.process.wait()


def rotate(log: Path) -> None:
    """Rotate a large log, keeping one old file, so that frequent starts cannot fill the disk."""
    if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
        log.replace(rotated_log(log))


def rotated_log(log: Path) -> Path:
    """Return the name that `rotate` gives a log."""
    return log.with_name(log.name + ".1")


def dying_with(parent: int, death_signal: signal.Signals) -> Callable[[], None]:
    """Return the function that a child runs between fork and exec, to end with its parent.

    Changing the user clears the parent-death signal, so it must be set afterwards, which is when
    subprocess calls this function. The kernel sends the signal when the forking thread ends, so
    that must be the main one.
    """

    def prepare() -> None:
        LIBC.prctl(PR_SET_PDEATHSIG, int(death_signal))
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the supervisor blocks what it waits for
        if os.getppid() != parent:
            os._exit(1)  # the parent died before the signal was requested

    return prepare
