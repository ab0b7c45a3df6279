"""The supervisor's second line: when it dies, whatever it or its children started is ended.

The kernel's parent-death signal reaches the children alone. A Spark driver's JVM is a grandchild,
and so may be whatever comes later, hence a small process that waits for the end of a pipe which
only the supervisor holds open.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from cdclake.local.process.orphan_processes import end_strays

GRACE_S = 3.0  # PostgreSQL's immediate shutdown, asked for by its death signal, takes less


class Watchdog:
    """The supervisor's handle on its watchdog: started, and started again should it die."""

    def __init__(self, home: Path, token: str) -> None:
        self.home = home
        self.token = token
        # Python opens both ends non-inheritable: no child keeps the writing end open.
        self.read_end, self.write_end = os.pipe()
        self.process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
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
        """At a clean stop nobody is left to end."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def main() -> int:
    """Exit code 0, when the supervisor has died and all that it kept is gone."""
    parser = argparse.ArgumentParser(description="Ends a lake's processes when their keeper dies.")
    parser.add_argument("--home", required=True, type=Path)
    parser.add_argument("--keeper", required=True)
    parser.add_argument("--pipe", required=True, type=int)
    args = parser.parse_args()
    while os.read(args.pipe, 1):
        continue
    time.sleep(GRACE_S)
    # Only this supervisor's: a new one may have started the lake again meanwhile.
    ended = end_strays(args.home, keeper=args.keeper)
    if ended:
        sys.stdout.write(f"watchdog: the supervisor died, ended {ended}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
