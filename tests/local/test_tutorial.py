"""The tutorial, typed as it is written: every command succeeds, and the lake equals the source."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.running import lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
SESSION = "cdclake psql"
DONE_BEFORE = ("make setup", "export CDCLAKE_HOME=")


def steps() -> Iterator[tuple[str, str]]:
    """Yield (language, text) of each block up to the end of the numbered sections."""
    numbered = PAGE.read_text().split("\n## With an existing database")[0]
    yield from re.findall(r"^```(sh|sql)\n(.*?)^```$", numbered, re.M | re.S)


class Typist:
    """A shell session in one folder, with the lake's commands on its path."""

    def __init__(self, folder: Path, home: Path) -> None:
        tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": tools, "CDCLAKE_HOME": str(home)}
        self._folder = folder
        self.typed = 0

    def type(self, line: str, standard_input: str | None = None) -> None:
        """Run one line; it must succeed."""
        if line.startswith(DONE_BEFORE) or line == SESSION:
            return
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self._folder,
            env=self._environment,
            input=standard_input,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stdout[-3000:], done.stderr[-3000:])
        self.typed += 1


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_tutorial_commands_succeed(tmp_path: Path) -> None:
    with lake_in(tmp_path) as lake:
        typist = Typist(tmp_path, lake.home)
        for language, text in steps():
            if language == "sql":
                typist.type(f"{SESSION} -- -q -v ON_ERROR_STOP=1", text)
            else:
                for line in text.splitlines():
                    typist.type(line)
        assert typist.typed > 10
