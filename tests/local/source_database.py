"""A PostgreSQL of its own for tests of the source: the embedded one, without the rest of a lake."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from cdclake.config.resolve import load_plan
from cdclake.local.components import postgres
from cdclake.local.lake.introspect import introspect_tables
from cdclake.local.process.home import Home
from cdclake.plan import Plan
from cdclake.postgres.ownership import Owner
from cdclake.postgres.pipeline_text import render_pipeline


@contextmanager
def running_server(*settings: str) -> Iterator[str]:
    """The DSN of a superuser on a server that lives as long as the block, with more settings."""
    folder = Path(tempfile.mkdtemp(prefix="cdclake-source-"))
    home = Home(folder)
    home.create()
    postgres.prepare(home)
    port = free_port()
    spec = postgres.component(home, port).spec
    with (folder / "postgres.log").open("wb") as log:
        server = subprocess.Popen(
            [*spec.argv, *(word for setting in settings for word in ("-c", setting))],
            env={**spec.shell, **spec.env},
            cwd=spec.cwd,
            user=spec.user,
            stdout=log,
            stderr=log,
        )
    try:
        _wait(home, port)
        password = home.secret("superuser_password")
        yield f"postgresql://{postgres.SUPERUSER}:{password}@127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
        shutil.rmtree(folder)


PASSWORD = "role-secret-1"
OWNER = Owner("local:0123456789abcdef", "the lake of the tests")


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait(home: Home, port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            if postgres.answers(home, port):
                return
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def load_dump(dsn: str, path: Path) -> None:
    """Runs what pg_dump wrote as text, its COPY blocks included."""
    parts = re.split(
        r"^(COPY [^\n]* FROM stdin;)\n(.*?)^\\\.$", path.read_text(), flags=re.M | re.S
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        for position in range(0, len(parts), 3):
            connection.execute(parts[position].encode())
            if position + 1 < len(parts):
                with connection.cursor().copy(parts[position + 1].encode()) as copy:
                    copy.write(parts[position + 2])


def run(dsn: str, *statements: str) -> list[tuple[Any, ...]]:
    """The rows of the last statement."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        # A SELECT without columns has a description, which is empty.
        return cursor.fetchall() if cursor.description is not None else []


def proposed(dsn: str, path: Path, edit: Callable[[str], str] = str) -> Plan:
    """The plan of the file that `init` would write, edited; it has to be valid."""
    name, proposals = introspect_tables(dsn, None)
    path.write_text(edit(render_pipeline(name, proposals)), encoding="utf-8")
    return load_plan(path)


def uncommented(text: str) -> str:
    return "\n".join(line.removeprefix("# ") for line in text.splitlines())


def role_dsn(dsn: str, plan: Plan) -> str:
    return make_conninfo(dsn, user=plan.source_object, password=PASSWORD)
