"""The command on a pseudo-terminal, where it asks."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path


def on_a_terminal(answer: bytes, home: Path, *words: str) -> tuple[int, str]:
    """Run the command on a pseudo-terminal, answer once, and return its exit code and output."""
    process, terminal = pty.fork()
    if process == 0:
        environment = {**os.environ, "CDCLAKE_HOME": str(home)}
        program = [sys.executable, "-m", "cdclake.cli.main", *words]
        os.execve(sys.executable, program, environment)
    os.write(terminal, answer)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # Linux's end of a terminal
            break
        if not part:
            break
        shown += part
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), shown.decode()
