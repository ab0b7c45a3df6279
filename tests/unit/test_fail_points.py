"""Fail points: they kill at the visit that the environment names, and exist under their names."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cdclake.fail_points import FAIL_POINT_KEY, FAIL_POINTS

PROJECT = Path(__file__).resolve().parents[2]
VISITS = (
    "from cdclake.fail_points import reach\nfor n in (1, 2, 3): reach('a'); reach('b'); print(n)"
)


@pytest.mark.parametrize(
    ("armed", "printed"), [("a", []), ("a@1", []), ("a@3", ["1", "2"]), ("b@2", ["1"])]
)
def test_reach_kills_at_the_named_visit(armed: str, printed: list[str]) -> None:
    done = _visits(armed)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split() == printed


@pytest.mark.parametrize("armed", ["", "other", "a@4"])
def test_reach_does_nothing_elsewhere(armed: str) -> None:
    done = _visits(armed)
    assert (done.returncode, done.stdout.split()) == (0, ["1", "2", "3"])


def test_fail_points_are_those_in_the_sources() -> None:
    sources = [*PROJECT.glob("glue_jobs/**/*.py"), *PROJECT.glob("cdclake/**/*.py")]
    text = "\n".join(source.read_text() for source in sources)
    assert set(re.findall(r'reach\("(\w+)"\)', text)) == set(FAIL_POINTS)


def _visits(armed: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-u", "-c", VISITS],
        cwd=PROJECT,
        env={**os.environ, FAIL_POINT_KEY: armed},
        capture_output=True,
        text=True,
        check=False,
    )
