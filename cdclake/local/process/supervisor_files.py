"""Log and state files of the supervisor: a disk without space must not end the lake's processes."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cdclake.local.process.home import write_atomically


@dataclass
class StateFile:
    """File that the supervisor replaces again and again; `failed` after a write that failed."""

    path: Path
    failed: bool = False

    def write(self, text: str) -> None:
        """Replace the text; the first write that fails is logged, and the caller tries again."""
        try:
            write_atomically(self.path, text)
        except OSError as error:
            if not self.failed:
                say(f"cannot write {self.path.name}: {error.strerror}; trying again")
            self.failed = True
            return
        if self.failed:
            say(f"wrote {self.path.name} again")
        self.failed = False


def say(line: str) -> None:
    """Write a log line with a timestamp; a full disk loses it."""
    with suppress(OSError):
        sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n")
        sys.stdout.flush()
