"""The recorder shows a program's terminal line by line, and fails with the program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.source_tree import PROJECT

pytestmark = pytest.mark.slow

RECORD = """
import json, sys
from scripts.record_demo import record
print(json.dumps(record(("/bin/sh", "-c", sys.argv[1]))))
"""
GREEN_THEN_SCROLLED = r"""
stty size; printf '\033[32mgreen\033[0m plain\n'; sleep 1.5; printf '\033[1Ared\n'; sleep 1.5
i=0; while [ $i -lt 45 ]; do echo "line $i"; i=$((i+1)); done
"""


@pytest.fixture(scope="module")
def python() -> Path:
    environment = "build/venvs/site/.installed"
    done = subprocess.run(
        ["make", environment], cwd=PROJECT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return PROJECT / "build/venvs/site/bin/python"


def recorded(python: Path, script: str) -> subprocess.CompletedProcess[str]:
    words = [str(python), "-c", RECORD, script]
    return subprocess.run(
        words, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False
    )


def test_frames_hold_the_lines_that_changed(python: Path) -> None:
    frames = [text for _, text in json.loads(recorded(python, GREEN_THEN_SCROLLED).stdout)]
    assert frames[0] == (
        "\x1b[1;1H\x1b[2K$ cdclake demo --seconds 10\x1b[2;1H\x1b[2K40 80"
        "\x1b[3;1H\x1b[2K\x1b[32mgreen\x1b[0m plain"
    )
    assert frames[1] == "\x1b[3;1H\x1b[2Kred\x1b[32men\x1b[0m plain"
    assert frames[-1].startswith("\x1b[1;1H\x1b[2Kline 6\x1b[2;1H\x1b[2Kline 7")
    assert frames[-1].endswith("\x1b[39;1H\x1b[2Kline 44")


def test_a_program_that_fails_is_not_recorded(python: Path) -> None:
    done = recorded(python, "echo out of memory; exit 3")
    assert done.returncode == 1
    assert "exited with 3" in done.stderr and "out of memory" in done.stderr
