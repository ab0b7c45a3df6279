"""Checks of this machine, of the local lake, and of a source database before it is streamed."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from cdclake.check import Check, failed, guarded, passed, skipped, warned
from cdclake.errors import InputError
from cdclake.extras import CDK, LOCAL, install_remedy, missing_modules
from cdclake.jar_cache import COMMON_PLATFORM, check_locked, platform_name, postgres_profile
from cdclake.java_version import TESTED_JAVA, java_version
from cdclake.jobs.runtime.source import connect
from cdclake.local.components.installed import (
    check_system,
    fetch_lake_jars,
    present_java,
)
from cdclake.local.lake.source import check_source
from cdclake.local.lake.source_tls import refuse_options, secured
from cdclake.local.process.home import Home, read_json
from cdclake.local.process.ports import is_free
from cdclake.local.stream_checks import check_stream, check_wal_limit
from cdclake.node_program import NODE_REMEDY, has_node, node_program
from cdclake.places import IS_INSTALLED, JARS
from cdclake.plan import Plan
from cdclake.postgres.ownership import Owner
from cdclake.postgres.server import check_settings
from cdclake.postgres.source import check_polled_tables, read_server

_LEAST_FREE_GB, _ENOUGH_FREE_GB = 2, 10
_MAX_CLOCK_DIFFERENCE_S = 5.0


def check_machine(home: Home) -> list[Check]:
    """Check platform, Java, Node.js, Python, its packages, jars, disk, rights and ports."""
    return [
        *guarded("platform", _platform),
        *guarded("java", lambda: _java(home)),
        *_python(),
        *_packages(),
        *_node(),
        *guarded("jars", _jars),
        *_disk(home),
        *_rights(home),
        *_ports(home),
    ]


def check_database(dsn: str, plan: Plan | None, owner: Owner) -> list[Check]:
    """Check that the database can be streamed: server, rights, tables, keys, and its clock.

    Changes nothing. Each reason against it is one failed check. A DSN that `up` refuses fails, and
    the connection is as encrypted as that of `up`.
    """
    try:
        refuse_options(dsn)
    except InputError as error:
        return [failed("source", error.message, error.remedy)]
    dsn = secured(dsn)
    found = guarded("source", lambda: _admission(dsn, plan, owner))
    if plan is None or plan.tables:
        found += guarded("wal", lambda: _wal_limit(dsn))
    return [*found, *guarded("clock", lambda: _clock(dsn))]


def repair(home: Home) -> list[str]:
    """Repair what is the lake's own: the rights of its folders. Return what was changed."""
    wrong = [path for path in _private(home) if path.stat().st_mode & 0o077]
    for path in wrong:
        path.chmod(path.stat().st_mode & ~0o077)
    return [f"{path} is private again" for path in wrong]


def _platform() -> Iterator[Check]:
    check_system()
    system, machine = platform.system(), platform.machine()
    check_locked(postgres_profile(system, machine))
    name = platform_name(system, machine)
    if name == COMMON_PLATFORM:
        yield passed("platform", name)
    else:
        yield warned(
            "platform", f"a lake was never tried on {name}", f"use {COMMON_PLATFORM} if it fails"
        )


def _java(home: Home) -> Iterator[Check]:
    program = present_java(home)
    version = java_version(program)
    if version != TESTED_JAVA:
        yield warned(
            "java",
            f"{program} is Java {version}; Spark 3.5 is tested with {TESTED_JAVA}",
            f"set JAVA_HOME to a Java {TESTED_JAVA}",
        )
    else:
        yield passed("java", f"{program}, version {version}")


def _python() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] == (3, 11):
        yield passed("python", version)
    else:
        yield warned("python", f"{version}; Glue and the tests use 3.11", "use Python 3.11")


def _packages() -> Iterator[Check]:
    if missing := missing_modules(LOCAL):
        yield failed("packages", f"a local lake needs {', '.join(missing)}", install_remedy(LOCAL))
    else:
        yield passed("packages", "all of a local lake are installed")


def _node() -> Iterator[Check]:
    """Check what the CDK needs; a lake on this machine does not need it."""
    if missing_modules(CDK):
        yield skipped("node", "the extra cdk is not installed")
    elif has_node():
        yield passed("node", f"{node_program()!r} was found")
    else:
        yield warned(
            "node",
            f"{node_program()!r} was not found: `cdclake cost` and a deployment need Node.js",
            NODE_REMEDY,
        )


def _jars() -> Iterator[Check]:
    if IS_INSTALLED:
        yield passed("jars", f"each is fetched to {JARS} when it is first needed")
        return
    fetch_lake_jars()
    yield passed("jars", f"all of {JARS} are there")


def _disk(home: Home) -> Iterator[Check]:
    place = next(path for path in (home.path, *home.path.parents) if path.exists())
    free = shutil.disk_usage(place).free // 1024**3
    detail = f"{free} GB free for {home.path}"
    remedy = "free some space, or set CDCLAKE_HOME to a folder on another disk"
    if free < _LEAST_FREE_GB:
        yield failed("disk", detail, remedy)
    elif free < _ENOUGH_FREE_GB:
        yield warned("disk", detail, remedy)
    else:
        yield passed("disk", detail)


def _private(home: Home) -> list[Path]:
    files = (home.logs, home.run, home.clients, home.secrets_file)
    return [path for path in files if path.exists()]


def _rights(home: Home) -> Iterator[Check]:
    open_ones = [str(path) for path in _private(home) if path.stat().st_mode & 0o077]
    if open_ones:
        yield failed(
            "rights",
            f"others can read {', '.join(open_ones)}",
            "run `cdclake doctor --fix`, or chmod them",
        )
    else:
        yield passed("rights", "secrets and logs are private")


def _ports(home: Home) -> Iterator[Check]:
    if missing_modules(LOCAL):
        yield skipped("ports", "no local lake can run")
        return
    from cdclake.local.lake import stack  # needs the extra

    living = {part["name"] for part in stack.components(home) if part["state"] == "running"}
    saved = {str(name): int(port) for name, port in read_json(home.ports_file).items()}
    taken = [
        f"{name} ({port})"
        for name, port in saved.items()
        if name.partition("-")[0] not in living and not is_free(port)
    ]
    if taken and living:
        yield failed(
            "ports",
            f"other processes listen on the ports of {', '.join(taken)}",
            "stop them, or run `cdclake down` and `cdclake up`, which chooses other ports",
        )
    else:
        yield passed("ports", f"{len(saved) or 'no'} ports are assigned, and none is taken")


def _admission(dsn: str, plan: Plan | None, owner: Owner) -> Iterator[Check]:
    """Check the plan's tables; without a plan, the server's settings alone."""
    if plan is None:
        yield from _settings(dsn)
        return
    try:
        if plan.tables:
            check_source(dsn, plan, owner)
        else:  # the source may be a read replica
            _check_polled(dsn, plan)
    except InputError as error:
        for line in error.message.splitlines():
            if line.strip():
                yield failed("source", line.strip(), error.remedy)
        return
    way = "streamed" if plan.tables else "polled"
    yield passed("source", f"the server and its tables can be {way}")


def _check_polled(dsn: str, plan: Plan) -> None:
    with connect(dsn) as connection:
        check_polled_tables(connection, plan)


def _settings(dsn: str) -> Iterator[Check]:
    with connect(dsn) as connection:
        state = read_server(connection, "cdclake")
    refusals = check_settings(state)
    for refusal in refusals:
        yield failed("source", str(refusal), refusal.remedy)
    if not refusals:
        yield passed("source", f"PostgreSQL {state.version // 10_000}, wal_level logical")


def _wal_limit(dsn: str) -> Iterator[Check]:
    with connect(dsn) as connection:
        yield check_wal_limit(read_server(connection, "cdclake"))


def _clock(dsn: str) -> Iterator[Check]:
    with connect(dsn) as connection:
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
    assert row is not None
    difference = abs(datetime.now(UTC).timestamp() - float(row[0]))
    detail = f"source and this machine differ by {difference:.1f} s"
    if difference > _MAX_CLOCK_DIFFERENCE_S:
        yield warned("clock", detail, "synchronize both clocks: freshness is measured with them")
    else:
        yield passed("clock", detail)


def check_lake(home: Home) -> list[Check]:
    """Check clock, slot and publication of the lake that runs in this home; skipped without one."""
    if missing_modules(LOCAL):
        return [skipped("lake", "no local lake can run")]
    from cdclake.local.lake import stack  # needs the extra
    from cdclake.local.lake.lake import LakeState, open_lake

    state = LakeState.load(home)
    if not state.plan or not stack.is_up(home):
        return [skipped("lake", f"no lake runs in {home.path}")]
    lake = open_lake(home)
    return [
        passed("lake", f"runs in {home.path}"),
        *guarded("clock", lambda: _clock(lake.dsn)),
        *guarded("slot", lambda: check_stream(lake.dsn, lake.plan)),
    ]
