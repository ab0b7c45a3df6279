"""A hot standby of a running PostgreSQL, from a copy of its files."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cdclake.local.components import postgres, postgres_place
from cdclake.local.components.postgres_place import PostgresPlace
from cdclake.local.process.home import Home
from tests.local.source_database import free_port


@contextmanager
def running_standby(primary: str, *settings: str) -> Iterator[str]:
    """The DSN of a standby that lives as long as the block; `settings` are the primary's."""
    home = Home(Path(tempfile.mkdtemp(prefix="cdclake-standby-")))
    home.create()
    where = postgres_place.place(home)
    postgres_place.make_base(home, where)
    _copy(primary, where)
    port = free_port()
    spec = postgres.component(home, port).spec
    more = [word for setting in settings for word in ("-c", setting)]
    with (home.path / "postgres.log").open("wb") as log:
        server = subprocess.Popen(
            [*spec.argv, *more],
            env={**spec.shell, **spec.env}, cwd=spec.cwd, user=spec.user, stdout=log, stderr=log,
        )  # fmt: skip
    dsn = make_conninfo(primary, port=str(port))
    try:
        _await(dsn, home)
        yield dsn
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
        shutil.rmtree(where.base, ignore_errors=True)
        shutil.rmtree(home.path, ignore_errors=True)


def _copy(primary: str, where: PostgresPlace) -> None:
    """Copy the primary's files as an online backup, and have them follow it."""
    with psycopg.connect(primary, autocommit=True) as connection:
        [data] = connection.execute("SHOW data_directory").fetchone() or [""]
        connection.execute("SELECT pg_backup_start('standby', true)")
        shutil.copytree(data, where.data, ignore=shutil.ignore_patterns("postmaster.*"))
        row = connection.execute("SELECT labelfile FROM pg_backup_stop()").fetchone()
    assert row is not None
    (where.data / "backup_label").write_text(row[0])
    (where.data / "standby.signal").touch()
    parts = {k: str(v) for k, v in conninfo_to_dict(primary).items() if k != "dbname"}
    with (where.data / "postgresql.auto.conf").open("a") as settings:
        settings.write(f"primary_conninfo = '{make_conninfo(**parts)}'\n")
    for path in [where.data, *where.data.rglob("*")]:
        where.give(path)
    where.data.chmod(0o700)


def _await(dsn: str, home: Home) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(dsn).close()
            return
        except psycopg.OperationalError:
            log = (home.path / "postgres.log").read_text()[-2000:]
            assert time.monotonic() < deadline, log
            time.sleep(0.2)
