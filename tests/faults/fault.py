"""Definition of a fault, and the operations that its injection uses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil

from cdclake.control_objects import LEASES
from cdclake.fail_points import FAIL_POINT_KEY
from cdclake.local.lake.lake import open_lake
from cdclake.local.process.home import Home
from tests.local.running import PROJECT, RunningLake
from tests.model_lake.disturbances import bring_up

# A late stream commits each state once in its `state_freshness` of 60 s only.
LONGEST_DEATH_S = 300.0


@dataclass(slots=True)
class FaultyLake:
    """The campaign's lake while a fault is injected and healed."""

    lake: RunningLake
    file: Path
    random: Random
    quarantined: int = 0  # events that the faults so far have put there on purpose

    def heal(self) -> None:
        """Run `up` as an operator would, without any fault armed."""
        bring_up(self.lake, self.file)

    def kill(self, component: str) -> None:
        """Kill a component and see that it is dead."""
        self.lake.kill(component)
        self.lake.eventually(lambda: not self.lake.is_running(component), seconds=20)

    def wait_for_death(self, component: str) -> None:
        """Wait until the component has died at its fail point."""
        self.lake.eventually(lambda: not self.lake.is_running(component), seconds=LONGEST_DEATH_S)

    def stream_dies_at(self, point: str, visit: int) -> None:
        """Let the stream run into a fail point, and heal it."""
        self.kill_stream_at(point, visit)
        self.heal()

    def kill_stream_at(self, point: str, visit: int) -> None:
        """Bring the lake up with an armed fail point, and wait until the stream has died of it."""
        armed = {FAIL_POINT_KEY: f"{point}@{visit}"}
        answer = self.lake.run("up", str(self.file), expect=None, **armed)
        try:
            self.wait_for_death("stream")
        except AssertionError as error:
            said = answer.get("did", answer)
            raise AssertionError(
                f"no death at {point}@{visit}; up said {said}; status: {self.stream_seen()}"
            ) from error

    def stream_seen(self) -> str:
        """What `status` says of the tables, and the end of the stream's log, for a report."""
        seen = self.lake.run("status", expect=None)
        tables = {
            each["table"]: {k: each.get(k) for k in ("state", "lag", "error", "state_age_s")}
            for each in seen.get("tables", [])
        }
        log = self.lake.home / "logs" / "stream.log"
        own = [line for line in log.read_text().splitlines(keepends=True) if line.startswith("{")]
        return f"{tables}\n{''.join(own[-60:])}"

    @contextmanager
    def suspended(self, component: str) -> Iterator[None]:
        """Suspend all processes of a component for the block."""
        root = psutil.Process(self.lake.pid(component))
        family = [root, *root.children(recursive=True)]
        for process in family:
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in family:
                process.send_signal(signal.SIGCONT)

    def execute(self, *statements: str) -> None:
        """Run statements in the source as its owner."""
        with self.lake.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def command_dies(self, *words: str, **armed: str) -> None:
        """Run a command into a fail point of its own process."""
        done = subprocess.run(
            [sys.executable, "-m", "cdclake.cli.main", *words, "--json"],
            cwd=PROJECT,
            env={**os.environ, "CDCLAKE_HOME": str(self.lake.home), **armed},
            capture_output=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done

    def release_leases(self) -> None:
        """Free the leases of a killed job, which otherwise expire after ten minutes."""
        control = open_lake(Home(self.lake.home)).control
        for name in list(control.names(LEASES)):
            control.delete(f"{LEASES}/{name}")

    def pause_s(self, least: float, most: float) -> None:
        """Let the lake run for a random time."""
        time.sleep(self.random.uniform(least, most))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of the matrix."""

    id: str
    group: str  # faults of a group share one lake
    title: str
    inject: Callable[[FaultyLake], None]  # injects the fault and heals it, while writers run
    database_may_die: bool = False
