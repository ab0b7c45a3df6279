"""The lake's components as a whole: bring them up, look at them, take them down.

`bring_up` also heals: what is alive is left alone. Whatever runs on top (the Spark stream, the
Firehose stand-in) is added with `run_component` and removed with `stop_component`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from cdclake.local.components import aws, connect, kafka, postgres, postgres_place
from cdclake.local.process import ports, supervisor_client
from cdclake.local.process.home import Home, read_json
from cdclake.local.process.process_spec import Desired, Observed, ProcessStatus, Spec
from cdclake.local.process.supervisor_client import SUPERVISOR, Component

HOST = "127.0.0.1"


@dataclass(frozen=True)
class LocalSource:
    """How to reach the embedded PostgreSQL as its superuser."""

    host: str
    port: int
    user: str
    password: str
    dbname: str


@dataclass(frozen=True)
class Endpoints:
    """Where everything answers; `source` is None when the lake was given a database."""

    source: LocalSource | None
    kafka: str
    connect: str
    s3: str
    glue: str
    logs: str
    firehose: str = ""  # its API, while a stream has it run


def bring_up(home: Home, *, embedded_postgres: bool = True, streaming: bool = True) -> Endpoints:
    """Start what is not running, wait until all of it is ready, and say where it is.

    `streaming`: with what tables of a database need.
    """
    with home.changing():
        observed = supervisor_client.observe(home)
        assigned = ports.assign(home, observed.living())
        if streaming and not embedded_postgres and postgres.NAME in observed.living():
            supervisor_client.remove(home, postgres.NAME)
        wanted = _components(home, assigned, embedded_postgres, streaming)
        prepare = _preparations(home, assigned)
        dead = [part.spec.name for part in wanted if part.spec.name not in observed.living()]
        with ThreadPoolExecutor(max_workers=len(prepare)) as pool:
            steps = [pool.submit(prepare[name]) for name in dead if name in prepare]
            for step in steps:
                step.result()
        # Two JVMs that start at once on two cores only hold each other up.
        supervisor_client.ensure(home, [part for part in wanted if part.spec.name != connect.NAME])
        supervisor_client.ensure(home, wanted)
        return endpoints(home, embedded_postgres=embedded_postgres)


def endpoints(home: Home, *, embedded_postgres: bool = True) -> Endpoints:
    """Where a lake that was brought up answers, without asking whether it still does."""
    port = read_json(home.ports_file)
    source = (
        LocalSource(
            HOST,
            port["postgres"],
            postgres.SUPERUSER,
            home.secret("superuser_password"),
            postgres.DATABASE,
        )
        if embedded_postgres
        else None
    )
    return Endpoints(
        source=source,
        kafka=f"{HOST}:{port['kafka']}",
        connect=f"http://{HOST}:{port['connect']}",
        s3=f"http://{HOST}:{port['aws']}",
        glue=f"http://{HOST}:{port['aws']}",
        logs=str(home.logs),
        # A home that an earlier version brought up has no port for it until the next `up`.
        firehose=f"http://{HOST}:{port.get('firehose', '')}",
    )


def run_component(
    home: Home, spec: Spec, ready: Callable[[], bool], timeout_s: float
) -> ProcessStatus:
    """Run one more process, or run it anew when its spec has changed or it is dead.

    Raises ComponentFailed with the end of its log when it ends or is not ready in time.
    """
    with home.changing():
        observed = supervisor_client.ensure(home, [Component(spec, ready, timeout_s)])
    seen = observed.component(spec.name)
    if seen is None:
        raise supervisor_client.failed(spec, f"{spec.name} is not kept any more")
    return seen


def stop_component(home: Home, name: str) -> None:
    """Stop one process and forget it; fine when it does not run."""
    with home.changing():
        if wants(home, name):
            supervisor_client.remove(home, name)


def shut_down(home: Home) -> bool:
    """Stop everything, in reverse order of starting; whether there was anything to stop."""
    if not home.path.is_dir():
        return False
    with home.changing():
        was_up = is_up(home)
        supervisor_client.stop(home)
    return was_up


def purge(home: Home) -> None:
    """Stop everything and remove the lake's folder, and the database's where that is outside."""
    shut_down(home)
    postgres_place.purge(home)
    shutil.rmtree(home.path, ignore_errors=True)


def is_up(home: Home) -> bool:
    """Whether there is a lake to ask: brought up and not taken down, all its parts dead or not."""
    return bool(_desired(home).specs)


def wants(home: Home, name: str) -> bool:
    return _desired(home).spec(name) is not None


def components(home: Home) -> list[dict[str, Any]]:
    """Every part with name, pid, state, port and log, the supervisor first; empty when down."""
    desired = _desired(home)
    if not desired.specs:
        return []
    observed = supervisor_client.observe(home)
    return [_supervisor(home, observed), *(_seen(spec, observed) for spec in desired.specs)]


def _seen(spec: Spec, observed: Observed) -> dict[str, Any]:
    """A wanted part that the supervisor has not reached yet is starting, unless nobody is there."""
    seen = observed.component(spec.name)
    if seen is None:
        state = "starting" if observed.alive else "dead"
        return {"name": spec.name, "pid": None, "state": state, "port": spec.port, "log": spec.log}
    return {name: getattr(seen, name) for name in ("name", "pid", "state", "port", "log")}


def _supervisor(home: Home, observed: Observed) -> dict[str, Any]:
    return {
        "name": SUPERVISOR,
        "pid": observed.supervisor_pid if observed.alive else None,
        "state": "running" if observed.alive else "dead",
        "port": None,
        "log": str(home.log(SUPERVISOR)),
    }


def _desired(home: Home) -> Desired:
    return Desired.from_json(read_json(home.desired_file))


def _components(
    home: Home, port: dict[str, int], embedded_postgres: bool, streaming: bool
) -> list[Component]:
    """In the order of starting, which the supervisor reverses to stop."""
    if not streaming:
        return [aws.component(home, port["aws"])]
    source = [postgres.component(home, port["postgres"])] if embedded_postgres else []
    return [
        *source,
        aws.component(home, port["aws"]),
        kafka.component(home, port["kafka"]),
        connect.component(home, port["connect"]),
    ]


def _preparations(home: Home, port: dict[str, int]) -> dict[str, Callable[[], None]]:
    return {
        postgres.NAME: lambda: postgres.prepare(home),
        kafka.NAME: lambda: kafka.prepare(home, port["kafka"], port["kafka-controller"]),
        connect.NAME: lambda: connect.prepare(home, port["connect"], port["kafka"], port["aws"]),
    }
