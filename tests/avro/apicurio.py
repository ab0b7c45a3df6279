"""The real Apicurio registry in memory, from the zip that its project publishes."""

from __future__ import annotations

import hashlib
import subprocess
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdclake.local.components.connect import DIRECT
from tests.local.source_database import free_port
from tests.source_tree import PROJECT

_ARTIFACT = "io.apicurio:apicurio-registry-app:2.6.13.Final:zip:all"
_SHA256 = "d88014c1addff1fc585e1e9510fc41276473726340f4e0997353b46342d3532b"
_FOLDER = PROJECT / "build" / "apicurio"
_START_S = 180.0


@contextmanager
def running_registry(log: Path) -> Iterator[str]:
    """Yield the URL of a registry that is gone afterwards."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["java", "-Xmx512m", f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1"]
    with log.open("wb") as output:
        server = subprocess.Popen([*command, "-jar", str(_runner())], stdout=output, stderr=output)
        try:
            _await_answer(url, server, log)
            yield url
        finally:
            server.kill()
            server.wait()


def set_rule(url: str, mode: str) -> None:
    """Refuse schemas of all artifacts that are not compatible in this mode."""
    request = urllib.request.Request(
        f"{url}/apis/registry/v2/admin/rules",
        data=f'{{"type": "COMPATIBILITY", "config": "{mode}"}}'.encode(),
        headers={"Content-Type": "application/json"},
    )
    DIRECT.open(request, timeout=10).close()


def _await_answer(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            DIRECT.open(f"{url}/apis/registry/v2/system/info", timeout=2).close()
            return
        except OSError:
            assert server.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)


def _runner() -> Path:
    """The program, fetched once."""
    if not list(_FOLDER.glob("*-runner.jar")):
        _FOLDER.mkdir(parents=True, exist_ok=True)
        copied = ["dependency:copy", f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={_FOLDER}"]
        subprocess.run(["mvn", "-B", "-C", "-q", *copied], check=True)
        [archive] = _FOLDER.glob("*.zip")
        assert hashlib.sha256(archive.read_bytes()).hexdigest() == _SHA256
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(_FOLDER)
    [runner] = _FOLDER.glob("*-runner.jar")
    return runner
