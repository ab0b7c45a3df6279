"""The embedded PostgreSQL: source database of a lake without `--source`."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from cdclake.errors import ComponentFailed
from cdclake.local.components import postgres_place
from cdclake.local.components.installed import environment, shell
from cdclake.local.components.postgres_place import PostgresPlace
from cdclake.local.process.home import Home
from cdclake.local.process.orphan_processes import end_processes_in
from cdclake.local.process.process_spec import Spec
from cdclake.local.process.supervisor_client import Component

NAME = "postgres"
SUPERUSER = "postgres"
DATABASE = "postgres"
# The server has no TLS and listens here alone; the shell may have PGSSLMODE, PGSSLROOTCERT and
# PGHOSTADDR for the user's database.
ONLY_HERE = {"hostaddr": "127.0.0.1", "sslmode": "disable", "sslrootcert": ""}
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # a socket's path may not be longer than 107 bytes; homes are
    "wal_level": "logical",
    "max_replication_slots": "10",
    "max_wal_senders": "10",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    # An unread slot must not fill the disk: beyond this size PostgreSQL invalidates it.
    "max_slot_wal_keep_size": "4GB",
    # A JVM may pause for a while on a busy machine; a dead peer is still detected.
    "wal_sender_timeout": "60s",
    # Data written by a killed process survives in the kernel, so fsync would only cost time here;
    # a power failure may lose the database. Full page writes stay on: SIGKILL can split a write of
    # 8 kB.
    "fsync": "off",
    "full_page_writes": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "jit": "off",
}


def prepare(home: Home) -> None:
    """Prepare an initialized, unlocked data folder; call it only while the server is down."""
    where = postgres_place.place(home)
    postgres_place.make_base(home, where)
    # Backends of a killed postmaster keep its shared memory for a short time.
    end_processes_in(where.data, "postgres")
    (where.data / "postmaster.pid").unlink(missing_ok=True)
    if not (where.data / "PG_VERSION").exists():
        _initialise(home, where)


def component(home: Home, port: int) -> Component:
    """Return the component; it is ready when the superuser can log in over TCP."""
    where = postgres_place.place(home)
    settings = {**SETTINGS, "port": str(port)}
    arguments = (part for key, value in settings.items() for part in ("-c", f"{key}={value}"))
    spec = Spec(
        name=NAME,
        argv=(str(where.binaries / "bin" / "postgres"), "-D", str(where.data), *arguments),
        env=environment(),
        shell=shell(),
        # A restart ends the users' sessions, so new settings wait for the next start.
        identity=(str(where.binaries), str(where.data)),
        cwd=str(where.base) if where.user is None else "/",
        user=where.user,
        port=port,
        stop_signal="SIGINT",  # fast: ends the sessions, writes a checkpoint
        death_signal="SIGQUIT",  # immediate: ends its backends too, recovers at the next start
        log=str(home.log(NAME)),
    )
    return Component(spec, lambda: answers(home, port))


def answers(home: Home, port: int) -> bool:
    """Return True if the superuser can log in and the server is not in recovery."""
    dsn = make_conninfo(
        host="127.0.0.1",
        port=port,
        user=SUPERUSER,
        password=home.secret("superuser_password"),
        dbname=DATABASE,
        connect_timeout=2,
        **ONLY_HERE,
    )
    with psycopg.connect(dsn) as connection:
        return connection.execute("select not pg_is_in_recovery()").fetchone() == (True,)


def _initialise(home: Home, where: PostgresPlace) -> None:
    """Run initdb in a new folder and rename it, so that an interrupted initdb leaves nothing."""
    fresh = where.base / "initdb"
    password = where.base / "password"
    shutil.rmtree(fresh, ignore_errors=True)
    _write_private(where, password, home.secret("superuser_password"))
    try:
        done = where.run(
            str(where.binaries / "bin" / "initdb"),
            *("-D", str(fresh), "-U", SUPERUSER, f"--pwfile={password}"),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"),
            # The same collation on every machine, with lower() and upper() for all of Unicode.
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        )
    finally:
        password.unlink()
    if done.returncode != 0:
        raise ComponentFailed(
            f"initdb could not create the database in {where.base} (exit {done.returncode})",
            "see its output below; free disk space or set CDCLAKE_HOME to another folder",
            component=NAME,
            log_tail=(done.stdout + done.stderr)[-4000:],
        )
    fresh.rename(where.data)


def _write_private(where: PostgresPlace, path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text + "\n")
    where.give(path)
