"""A real Trino without connectors, which runs SQL over values."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trino
from trino.exceptions import Error

from tests.local.source_database import free_port
from tests.source_tree import PROJECT

JARS = PROJECT / "jars" / "trino"
VERSION = "406"
_START = Path(__file__).with_name("StartTrino.java")
_START_S = 90.0
_CONFIG = """\
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery.uri=http://127.0.0.1:{port}
node.internal-address=127.0.0.1
node.bind-ip=127.0.0.1
query.max-memory-per-node=100MB
memory.heap-headroom-per-node=100MB
"""


class Trino:
    """A running server, asked over HTTP."""

    def __init__(self, port: int) -> None:
        self._connection = trino.dbapi.Connection(
            host="127.0.0.1",
            port=port,
            user="test",
            timezone="UTC",
            # A few rows: the exchanges and drivers that many rows need cost the most.
            session_properties={"task_concurrency": "1", "join_distribution_type": "BROADCAST"},
        )

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The query's rows."""
        cursor = self._connection.cursor()
        cursor.execute(query, list(values) or None)
        return [tuple(row) for row in cursor.fetchall()]

    def close(self) -> None:
        """End the session."""
        self._connection.close()  # type: ignore[no-untyped-call]


@contextmanager
def running_trino(folder: Path) -> Iterator[Trino]:
    """Yield a server that is gone afterwards."""
    port = free_port()
    for name in ("catalog", "plugin"):
        (folder / name).mkdir()
    (folder / "config.properties").write_text(_CONFIG.format(port=port))
    log = folder / "trino.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            _command(folder),
            cwd=folder,  # it writes its log of requests there
            stdout=output,
            stderr=output,
        )
        try:
            engine = _await_answer(port, server, log)
            yield engine
            engine.close()
        finally:
            server.kill()
            server.wait()


def _command(folder: Path) -> list[str]:
    settings = {
        "config": folder / "config.properties",
        "node.environment": "test",
        "node.id": "one",
        "node.data-dir": folder / "data",
        "catalog.config-dir": folder / "catalog",
        "plugin.dir": folder / "plugin",
    }
    return [
        *("java", "-Xms256m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *("-XX:+ExitOnOutOfMemoryError", "-Djdk.attach.allowAttachSelf=true"),
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        *(f"-D{name}={value}" for name, value in settings.items()),
        *("-cp", f"{JARS}/*", str(_START), VERSION),
    ]


def _await_answer(port: int, server: subprocess.Popen[bytes], log: Path) -> Trino:
    """Ask until a worker is there: the server answers earlier."""
    deadline = time.monotonic() + _START_S
    engine = Trino(port)
    while True:
        try:
            engine.rows("SELECT node_id FROM system.runtime.nodes")
            return engine
        except (OSError, Error):
            assert server.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
