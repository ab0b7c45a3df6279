"""The page of a real lake: `cdclake ui` as a process, and its address."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opened_page(home: Path) -> Iterator[str]:
    """Run the command for the lake in this home; yield the address that it prints."""
    command = [sys.executable, "-m", "cdclake.cli.main", "ui", "--json"]
    environment = {**os.environ, "CDCLAKE_HOME": str(home)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield str(json.loads(process.stdout.readline())["url"])
        finally:
            process.terminate()
