"""Watchdog: ends all descendants of the supervisor when the supervisor dies.

The kernel's parent-death signal reaches only direct children, but a Spark driver's JVM, for one, is
a grandchild. Therefore a small process waits for the end of a pipe that only the supervisor holds
open.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from cdclake.local.process.orphan_processes import kill_orphans

GRACE_S = 3.0  # PostgreSQL's immediate shutdown, caused by its death signal, takes less


class Watchdog:
    """The supervisor's handle of its watchdog process."""

    def __init__(self, home: Path, token: str) -> None:
        self.home = home
        self.token = token
        # Python makes both ends non-inheritable, so no child keeps the write end open.
        self.read_end, self.write_end = os.pipe()
        self.process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start the watchdog if it is not running."""
        if self.process is not None and self.process.poll() is None:
            return
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "cdclake.local.process.watchdog", "--home", str(self.home)),
                *("--keeper", self.token, "--pipe", str(self.read_end)),
            ],
            pass_fds=(self.read_end,),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """Kill the watchdog after a clean stop, when no process is left to end."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def main() -> int:
    """Wait for the supervisor's death, end its processes, and return 0."""
    parser = argparse.ArgumentParser(description="End a lake's processes if the supervisor dies.")
    parser.add_argument("--home", required=True, type=Path)
    parser.add_argument("--keeper", required=True)
    parser.add_argument("--pipe", required=True, type=int)
    args = parser.parse_args()
    while os.read(args.pipe, 1):
        continue
    time.sleep(GRACE_S)
    # Only this supervisor's processes: a new one may have started the lake again.
    ended = kill_orphans(args.home, keeper=args.keeper)
    if ended:
        sys.stdout.write(f"watchdog: the supervisor died; processes ended: {ended}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
