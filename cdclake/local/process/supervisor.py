"""Supervisor of a lake's processes: reads run/desired.json and writes run/observed.json.

The command line starts `python -m cdclake.local.process.supervisor --home PATH` detached. It holds
a lock for its lifetime, so a home has at most one supervisor. A process that dies is reported as
dead and restarted only by `cdclake up`. When the supervisor dies, the kernel's parent-death signal
ends its children, and a watchdog that waits on a pipe ends their descendants.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import socket
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from cdclake.errors import InputError
from cdclake.local.process import child_process, watchdog
from cdclake.local.process.child_process import Child
from cdclake.local.process.home import Home, read_json, try_lock
from cdclake.local.process.job_schedule import JobSchedule
from cdclake.local.process.orphan_processes import kill_orphans
from cdclake.local.process.process_spec import Desired, Spec
from cdclake.local.process.supervisor_files import StateFile, say

TICK_S = 0.2
PUBLISH_S = 1.0
STOP_WAIT_S = 20.0
LOCK_WAIT_S = 1.0
STOPPING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
WAITED = STOPPING | {signal.SIGCHLD}


class Supervisor:
    """Reconciliation of desired and running processes; single-threaded (see child_process)."""

    def __init__(self, home: Home, lock: int) -> None:
        self.home = home
        self.lock = lock
        self.token = secrets.token_hex(8)
        self.children: dict[str, Child] = {}
        self.generation = -1
        self.observed = StateFile(home.observed_file)
        self.published = ("", 0.0)
        self.desired_stamp: tuple[int, int] | None = None
        self.watchdog = watchdog.Watchdog(home.path, self.token)
        self.schedule = JobSchedule(home)
        self.job: Child | None = None  # the scheduled job that runs

    def run(self) -> None:
        """Keep the processes until SIGTERM; then stop all of them and report that."""
        self.watchdog.ensure()
        while self.holds_the_home():
            self.reconcile_when_new()
            self.run_due_job()
            self.publish()
            arrived = signal.sigtimedwait(WAITED, TICK_S)
            if arrived is not None and arrived.si_signo in STOPPING:
                break
            self.watchdog.ensure()
        else:
            say(f"{self.home.path} was removed; stopping the lake")
            return  # its files are gone or another supervisor's; the death signal ends the children
        self.stop_job()
        self.stop(list(self.children))
        self.publish(force=True)
        self.watchdog.dismiss()

    def holds_the_home(self) -> bool:
        """Return True if the lock file is still the locked one.

        The folder may have been removed manually, and even created again for another supervisor.
        """
        try:
            found = self.home.supervisor_lock.stat()
        except FileNotFoundError:
            return False
        return found.st_ino == os.fstat(self.lock).st_ino

    def reconcile_when_new(self) -> None:
        """Reconcile if desired.json has changed; keep the processes if it cannot be read."""
        try:
            stat = self.home.desired_file.stat()
        except FileNotFoundError:
            return
        stamp = (stat.st_ino, stat.st_mtime_ns)
        if stamp != self.desired_stamp:
            self.desired_stamp = stamp
            try:
                desired = Desired.from_json(read_json(self.home.desired_file))
            except InputError as error:
                say(f"the processes stay as they are: {error}")
                return
            self.reconcile(desired)

    def reconcile(self, desired: Desired) -> None:
        """Stop unwanted or changed processes, and start requested ones that are not alive."""
        unwanted = []
        for name, child in self.children.items():
            spec = desired.spec(name)
            reasons = ("no longer needed",) if spec is None else child.spec.differences(spec)
            if reasons:
                say(f"{name} has to stop: {'; '.join(reasons)}")
                unwanted.append(name)
        self.stop(unwanted)
        for name in unwanted:
            del self.children[name]
        for spec in desired.specs:
            known = self.children.get(spec.name)
            if known is None or (spec.name in desired.start and not known.alive):
                self.start(spec)
        self.schedule.follow(desired.scheduled, datetime.now(UTC))
        self.generation = desired.generation

    def run_due_job(self) -> None:
        """Note the end of the scheduled job that ran, and start the next one that is due."""
        now = datetime.now(UTC)
        self.schedule.save_again()
        if self.job is not None:
            if self.job.alive:
                return
            code = self.job.seen().exit_code
            self.schedule.ended(self.job.spec.name, code, now)
            say(f"the scheduled job {self.job.spec.name} ended with {code}")
            self.job = None
        due = self.schedule.due(now)
        if due is not None:
            self.schedule.started(due.name, now)
            self.job = child_process.start(due.spec, self.home.path, self.token)
            say(f"started the scheduled job {due.name}")

    def stop_job(self) -> None:
        """Stop the scheduled job that runs, with its own children; the next run does its work."""
        if self.job is None:
            return
        child_process.kill_group(self.job)
        kill_orphans(self.home.path, component=self.job.spec.name)
        self.schedule.ended(self.job.spec.name, None, datetime.now(UTC))
        self.job = None

    def start(self, spec: Spec) -> None:
        """Start a process after ending its predecessor's orphans, which may hold its port."""
        self.children.pop(spec.name, None)
        kill_orphans(self.home.path, component=spec.name)
        self.children[spec.name] = child_process.start(spec, self.home.path, self.token)
        say(f"started {spec.name}: {self.children[spec.name].seen()}")

    def stop(self, names: list[str]) -> None:
        """Stop processes in reverse order of starting; each has STOP_WAIT_S to end cleanly."""
        order = [name for name in self.children if name in names]
        for name in reversed(order):
            child = self.children[name]
            child_process.ask_to_stop(child)
            deadline = time.monotonic() + STOP_WAIT_S
            while child.alive and time.monotonic() < deadline:
                self.publish()
                time.sleep(0.05)
            if child.alive:
                say(f"{name} did not stop within {STOP_WAIT_S:.0f} s; killed")
            child_process.kill_group(child)
            kill_orphans(self.home.path, component=name)  # its orphaned children
            say(f"stopped {name}: {child.seen()}")

    def publish(self, force: bool = False) -> None:
        """Write run/observed.json when something has changed, and every second as a heartbeat."""
        for child in self.children.values():
            if child.alive and not child.accepts and child.spec.port is not None:
                child.accepts = accepts(child.spec.port)
        state = {
            "generation": self.generation,
            "supervisor_pid": os.getpid(),
            "components": [asdict(child.seen()) for child in self.children.values()],
            "schedules": self.schedule.report(),
        }
        text = json.dumps(state)
        now = time.monotonic()
        if force or text != self.published[0] or now - self.published[1] > PUBLISH_S:
            self.published = (text, now)
            self.observed.write(text)


def accepts(port: int) -> bool:
    """Return True if a server accepts connections on the port."""
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def take_lock(fd: int) -> bool:
    """Take the lock; retry for LOCK_WAIT_S, since a liveness check holds it for an instant."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while not try_lock(fd):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def main() -> int:
    """Run the supervisor; return 0 after a clean stop, 1 if the home already has a supervisor."""
    parser = argparse.ArgumentParser(description="Keep the processes of one lake running.")
    parser.add_argument("--home", required=True, type=Path)
    home = Home(parser.parse_args().home.resolve())
    home.create()
    # Signals are blocked and waited for in one place, so no handler interrupts another step.
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED)
    with home.supervisor_lock.open("a+") as lock:
        if not take_lock(lock.fileno()):
            say(f"{home.path} already has a supervisor")
            return 1
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        ended = kill_orphans(home.path)
        say(f"supervisor {os.getpid()} started for {home.path}; orphaned processes ended: {ended}")
        Supervisor(home, lock.fileno()).run()
        say("supervisor stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
