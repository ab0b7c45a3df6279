"""A real Trino: bare, for SQL over values, or with the catalog of a lake."""

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
ICEBERG_JARS = PROJECT / "jars" / "trino-iceberg"
VERSION = "406"
CATALOG = "awsdatacatalog"  # as Athena calls the Glue catalog of its account
_START = Path(__file__).with_name("StartTrino.java")
_START_S = 90.0
# Its one node announces itself every few seconds; on a busy machine it would pass for gone.
_CONFIG = """\
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery.uri=http://127.0.0.1:{port}
node.internal-address=127.0.0.1
node.bind-ip=127.0.0.1
discovery.max-age=10m
failure-detector.enabled=false
query.max-memory-per-node={memory}MB
memory.heap-headroom-per-node=100MB
"""


class Trino:
    """A running server, asked over HTTP."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._connection = trino.dbapi.Connection(
            host="127.0.0.1",
            port=port,
            user="test",
            timezone="UTC",
            catalog=CATALOG,
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
def running_trino(folder: Path, catalog: str = "") -> Iterator[Trino]:
    """Yield a server that is gone afterwards; with the properties of a catalog, it reads a lake."""
    port, memory = free_port(), 300 if catalog else 100
    for name in ("catalog", "plugin"):
        (folder / name).mkdir()
    if catalog:
        _link_plugin(folder / "plugin" / "iceberg")
        (folder / "catalog" / f"{CATALOG}.properties").write_text(catalog)
    (folder / "config.properties").write_text(_CONFIG.format(port=port, memory=memory))
    log = folder / "trino.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            _command(folder, heap_mb=4 * memory, compilers=2 if catalog else 1),
            cwd=folder,  # it writes its log of requests there
            stdout=output,
            stderr=output,
        )
        try:
            engine = _await_answer(port, server, log)
            yield engine
            engine.close()
        finally:
            ended = server.poll()
            server.kill()
            server.wait()
            assert ended is None, f"the server ended with {ended}: {log.read_text()[-3000:]}"


def _link_plugin(folder: Path) -> None:
    """Have the jars and the name of the plugin's class, whose own jar Maven Central lacks."""
    services = folder / "named" / "META-INF" / "services"
    services.mkdir(parents=True)
    (services / "io.trino.spi.Plugin").write_text("io.trino.plugin.iceberg.IcebergPlugin\n")
    for jar in ICEBERG_JARS.glob("*.jar"):
        (folder / jar.name).symlink_to(jar)


def _command(folder: Path, heap_mb: int, compilers: int) -> list[str]:
    settings = {
        "config": folder / "config.properties",
        "node.environment": "test",
        "node.id": "one",
        "node.data-dir": folder / "data",
        "catalog.config-dir": folder / "catalog",
        "plugin.dir": folder / "plugin",
    }
    # Without a catalog no query is repeated, so that a second compiler costs more than it saves.
    levels = ["-XX:TieredStopAtLevel=1"] if compilers == 1 else []
    return [
        *("java", "-Xms256m", f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", *levels),
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
