"""A Trino on this machine for as long as a block lasts: bare, or with the catalog of a lake.

Only the owner of the server can ask it: Trino takes no password without TLS, so the name of the
user is a secret, and the access rules grant nothing to any other name.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import trino
from trino.exceptions import Error, TrinoQueryError

from cdclake.activity import step
from cdclake.errors import ComponentFailed
from cdclake.local.components.installed import environment, jar_folder, java, shell
from cdclake.local.process import ports
from cdclake.local.process.child_process import dying_with
from cdclake.local.process.home import Home
from cdclake.local.process.orphan_processes import COMPONENT_KEY, HOME_KEY
from cdclake.local.process.supervisor_client import log_tail

NAME = "trino"
JARS, ICEBERG_JARS = "trino", "trino-iceberg"  # profiles of pom.xml
CATALOG = "awsdatacatalog"  # as Athena calls the Glue catalog of its account
Access = Literal["read-only", "all"]

_VERSION = "406"
_START = Path(__file__).with_name("StartTrino.java")
_START_S = 90.0
_NODE_S = 30.0  # Trino looks every five seconds which nodes have a catalog
_END_S = 1.0  # a connection breaks before the server's process has ended
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
web-ui.enabled=false
internal-communication.shared-secret={secret}
access-control.config-files=access.properties
"""
_ACCESS = "access-control.name=file\nsecurity.config-file=access.json\n"


class Trino:
    """Session in a running server, whose user is known to its owner only."""

    def __init__(self, port: int, user: str) -> None:
        self.port, self.user = port, user
        self._connection = trino.dbapi.Connection(
            host="127.0.0.1",
            port=port,
            user=user,
            timezone="UTC",
            catalog=CATALOG,
            # One node: the exchanges and drivers that many rows need cost the most.
            session_properties={"task_concurrency": "1", "join_distribution_type": "BROADCAST"},
        )

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the query's rows.

        A server that has just started may not know yet that its node has the catalog. Such a query
        has not begun, so it is repeated.
        """
        deadline = time.monotonic() + _NODE_S
        while True:
            cursor = self._connection.cursor()
            try:
                cursor.execute(query, list(values) or None)
                return [tuple(row) for row in cursor.fetchall()]
            except TrinoQueryError as error:
                if error.error_name != "NO_NODES_AVAILABLE" or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def close(self) -> None:
        """End the session."""
        self._connection.close()  # type: ignore[no-untyped-call]


@contextmanager
def running_trino(
    folder: Path, home: Home | None = None, catalog: str = "", access: Access = "read-only"
) -> Iterator[Trino]:
    """Start a server in an empty folder, yield a session, and stop the server in any case.

    With the properties of a `catalog` it reads a lake. With a `home` its log and its process belong
    to that lake. It also ends when the thread that starts it does.

    Raises:
        InputError: if its jars are missing
        ComponentFailed: if it does not start, or ends within the block
    """
    port, user = ports.choose(), secrets.token_urlsafe(24)
    _write_settings(folder, port, user, catalog, access)
    log = folder / "trino.log" if home is None else home.log(NAME)
    server = _start(_command(folder, home, bool(catalog)), folder, home, log)
    try:
        with step("start Trino"):
            engine = _await_answer(Trino(port, user), server, log)
        yield engine
        engine.close()
    except (OSError, Error) as error:
        if _has_ended(server):
            raise _failed(f"Trino ended with exit code {server.poll()}", log) from error
        raise
    finally:
        server.kill()
        server.wait()


def _start(
    command: list[str], folder: Path, home: Home | None, log: Path
) -> subprocess.Popen[bytes]:
    marks = {} if home is None else {HOME_KEY: str(home.path), COMPONENT_KEY: NAME}
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            env={**shell(), **environment(**marks)},
            cwd=folder,  # it writes its log of requests there
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C interrupts the command, which then stops the server
            umask=0o077,
            preexec_fn=dying_with(os.getpid(), signal.SIGKILL),
        )


def _write_settings(folder: Path, port: int, user: str, catalog: str, access: Access) -> None:
    for name in ("catalog", "plugin"):
        (folder / name).mkdir()
    if catalog:
        _link_plugin(folder / "plugin" / "iceberg")
        (folder / "catalog" / f"{CATALOG}.properties").write_text(catalog)
    memory, secret = _query_mb(bool(catalog)), secrets.token_urlsafe(32)
    config = _CONFIG.format(port=port, memory=memory, secret=secret)
    (folder / "config.properties").write_text(config)
    (folder / "access.properties").write_text(_ACCESS)
    rules = {
        "catalogs": [{"user": user, "allow": access}],
        "queries": [{"user": user, "allow": ["execute", "view", "kill"]}],
    }
    (folder / "access.json").write_text(json.dumps(rules))


def _query_mb(reads_lake: bool) -> int:
    return 300 if reads_lake else 100


def _link_plugin(folder: Path) -> None:
    """Have the jars and the name of the plugin's class, whose own jar Maven Central lacks."""
    services = folder / "named" / "META-INF" / "services"
    services.mkdir(parents=True)
    (services / "io.trino.spi.Plugin").write_text("io.trino.plugin.iceberg.IcebergPlugin\n")
    for jar in jar_folder(ICEBERG_JARS).glob("*.jar"):
        (folder / jar.name).symlink_to(jar)


def _command(folder: Path, home: Home | None, reads_lake: bool) -> list[str]:
    program = "java" if home is None else java(home)
    settings = {
        "config": folder / "config.properties",
        "node.environment": "cdclake",
        "node.id": "one",
        "node.data-dir": folder / "data",
        "catalog.config-dir": folder / "catalog",
        "plugin.dir": folder / "plugin",
    }
    # Without a catalog no query is repeated, so that a second compiler costs more than it saves.
    levels = [] if reads_lake else ["-XX:TieredStopAtLevel=1"]
    return [
        *(program, "-Xms256m", f"-Xmx{4 * _query_mb(reads_lake)}m", "-XX:+UseSerialGC", *levels),
        *("-XX:+ExitOnOutOfMemoryError", "-Djdk.attach.allowAttachSelf=true"),
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        *(f"-D{name}={value}" for name, value in settings.items()),
        *("-cp", f"{jar_folder(JARS)}/*", str(_START), _VERSION),
    ]


def _await_answer(engine: Trino, server: subprocess.Popen[bytes], log: Path) -> Trino:
    """Ask until a worker is there: the server answers earlier."""
    deadline = time.monotonic() + _START_S
    while True:
        try:
            engine.rows("SELECT node_id FROM system.runtime.nodes")
            return engine
        except (OSError, Error) as error:
            if server.poll() is not None:
                raise
            if time.monotonic() > deadline:
                raise _failed(f"Trino did not answer within {_START_S:.0f} s", log) from error
            time.sleep(0.2)


def _has_ended(server: subprocess.Popen[bytes]) -> bool:
    try:
        server.wait(_END_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _failed(message: str, log: Path) -> ComponentFailed:
    return ComponentFailed(
        message,
        f"read its log {log}; Trino {_VERSION} needs a JDK 17 and about 1 GB of memory",
        component=NAME,
        log_tail=log_tail(log),
    )
