"""The project's wheel, and environments that hold it and nothing of the clone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.source_tree import PROJECT

UV = (str(PROJECT / ".venv" / "bin" / "uv"), "--quiet", "--no-config", "--system-certs")
# As scripts/setup.sh builds pyspark, whose wheel uv has in its cache then.
PYSPARK = (
    *("--no-build-isolation-package", "pyspark"),
    *("--config-settings-package", "pyspark:--build-option=--compression=stored"),
)
LONGEST_S = 600
LONGEST_END_S = 30


def build_wheel(folder: Path) -> Path:
    """Build the wheel in `folder`, with nothing left in the clone."""
    settings = folder / "build.cfg"
    settings.write_text(f"[build]\nbuild_base = {folder}/build\n[egg_info]\negg_base = {folder}\n")
    _run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"),
        *("--no-build-isolation", "--wheel-dir", str(folder), str(PROJECT)),
        DIST_EXTRA_CONFIG=str(settings),
    )
    [wheel] = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with the wheel; commands run in it as a user runs them."""

    folder: Path
    cache: Path

    def run(
        self, *words: str, cwd: Path, program: str = "cdclake", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, or else one of the PATH, in a folder."""
        found = self.folder / "bin" / program
        return subprocess.run(
            [str(found) if found.exists() else program, *words],
            cwd=cwd,
            env={**self._variables(), **variables},
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )

    @contextmanager
    def started(self, *words: str, cwd: Path) -> Iterator[dict[str, Any]]:
        """Start a command that goes on; yield the object that it prints first. End it after."""
        process = subprocess.Popen(
            [str(self.folder / "bin" / "cdclake"), *words],
            cwd=cwd,
            env=self._variables(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a failure is an object on standard output
            text=True,
        )
        try:
            assert process.stdout is not None
            yield dict(json.loads(process.stdout.readline()))
        finally:
            process.terminate()
            try:
                process.communicate(timeout=LONGEST_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                raise

    def _variables(self) -> dict[str, str]:
        kept = ("HOME", "PATH", "LANG", "JAVA_HOME", "SSL_CERT_FILE", "PIP_CERT", "PIP_INDEX_URL")
        found = {name: os.environ[name] for name in kept if name in os.environ}
        return {**found, "CDCLAKE_CACHE": str(self.cache), "VIRTUAL_ENV": str(self.folder)}


def install(wheel: Path, folder: Path, extras: str = "", *more: str) -> Installed:
    """Install the wheel with these extras into an empty environment below `folder`.

    The packages come from the cache that `make setup` fills, or else from the index.
    """
    place = folder / "environment"
    _run(*UV, "venv", "--python", sys.executable, str(place))
    constraints = ("--constraint", str(PROJECT / "requirements.lock"))
    wanted = (f"cdclake{extras} @ {wheel.as_uri()}", *more)
    command = (*UV, "pip", "install", *constraints)
    environment = {"VIRTUAL_ENV": str(place)}
    for words in [("setuptools",), (*PYSPARK, *wanted)] if extras else [wanted]:
        try:
            _run(*command, "--offline", *words, **environment)
        except AssertionError:
            _run(*command, *words, **environment)
    return Installed(place, folder / "cache")


def _run(*command: str, **variables: str) -> None:
    done = subprocess.run(
        command,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
