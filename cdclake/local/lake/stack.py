"""The lake's components as a whole: start, inspect and stop them.

`bring_up` is idempotent: it restarts dead components and leaves living ones alone. Further
processes (the Spark stream, the local Firehose) are added with `run_component` and removed with
`stop_component`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from psycopg.conninfo import make_conninfo

from cdclake.activity import step
from cdclake.local.components import aws, connect, jaas, kafka, postgres, postgres_place
from cdclake.local.components.connect import ConnectApi
from cdclake.local.components.installed import check_system
from cdclake.local.components.kafka import Broker
from cdclake.local.process import ports, supervisor_client
from cdclake.local.process.credentials import Login, aws_keys, connect_login, kafka_login
from cdclake.local.process.home import Home, read_json
from cdclake.local.process.process_spec import (
    Desired,
    Observed,
    ProcessStatus,
    ScheduledJob,
    Spec,
)
from cdclake.local.process.supervisor_client import SUPERVISOR, Component

HOST = "127.0.0.1"


@dataclass(frozen=True)
class LocalSource:
    """Connection parameters of the embedded PostgreSQL's superuser."""

    host: str
    port: int
    user: str
    password: str
    dbname: str

    def dsn(self, database: str = "") -> str:
        """Return the DSN of a database, or of the default one."""
        parts = {**asdict(self), "dbname": database or self.dbname}
        return make_conninfo(**parts, **postgres.ONLY_HERE)


@dataclass(frozen=True)
class Endpoints:
    """Addresses of all components; `source` is None if the lake has an external source."""

    source: LocalSource | None
    kafka: Broker
    connect: ConnectApi
    s3: str
    glue: str
    logs: str
    keys: Login  # of everything that is AWS's
    firehose: str = ""  # its API; answers only while a stream needs it


def bring_up(
    home: Home,
    *,
    embedded_postgres: bool = True,
    streaming: bool = True,
    converter: str | None = None,
) -> Endpoints:
    """Start the components that are not running, wait until all are ready, and return endpoints.

    With `streaming`, include the components that replicated tables need. `converter` is the
    profile of pom.xml with the connector's Avro converter; None: that of before.
    """
    check_system()
    with home.changing():
        home.check_secrets()
        if converter is not None:
            connect.choose_converter(home, converter)
        observed = supervisor_client.observe(home)
        assigned = ports.assign(home, observed.living())
        if streaming and not embedded_postgres and postgres.NAME in observed.living():
            supervisor_client.remove(home, postgres.NAME)
        wanted = _components(home, assigned, embedded_postgres, streaming)
        prepare = _preparations(home, assigned)
        jaas.write(home)
        starting = _starting(home, wanted, observed)
        with ThreadPoolExecutor(max_workers=len(prepare)) as pool:
            prepared = [pool.submit(prepare[name]) for name in starting if name in prepare]
            for each in prepared:
                each.result()
        # On two cores, two JVMs that start at once only delay each other.
        _ensure(home, [part for part in wanted if part.spec.name != connect.NAME], starting)
        _ensure(home, wanted, [name for name in starting if name == connect.NAME])
        return endpoints(home, embedded_postgres=embedded_postgres)


def endpoints(home: Home, *, embedded_postgres: bool = True) -> Endpoints:
    """Return the endpoints of a started lake, without checking that they answer."""
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
        kafka=Broker(f"{HOST}:{port['kafka']}", kafka_login(home)),
        connect=ConnectApi(f"http://{HOST}:{port['connect']}", connect_login(home)),
        s3=f"http://{HOST}:{port['aws']}",
        glue=f"http://{HOST}:{port['aws']}",
        logs=str(home.logs),
        keys=aws_keys(home),
        # The home of an earlier version has no port for it until the next `up`.
        firehose=f"http://{HOST}:{port.get('firehose', '')}",
    )


def run_component(
    home: Home, spec: Spec, ready: Callable[[], bool], timeout_s: float
) -> ProcessStatus:
    """Run another process; restart it if its spec has changed or it is dead.

    Raises:
        ComponentFailed: if it ends or is not ready in time; with the end of its log.
    """
    with home.changing(), step(f"start {spec.name}"):
        observed = supervisor_client.ensure(home, [Component(spec, ready, timeout_s)])
    seen = observed.component(spec.name)
    if seen is None:
        raise supervisor_client.failed(spec, f"the supervisor no longer runs {spec.name}")
    return seen


def schedule_jobs(home: Home, jobs: Sequence[ScheduledJob]) -> None:
    """Have the supervisor run these jobs on their schedules, and no others."""
    with home.changing():
        supervisor_client.schedule(home, jobs)


def schedules(home: Home) -> list[dict[str, Any]]:
    """Return each scheduled job with its schedule, last run and next run."""
    return list(supervisor_client.observe(home).schedules)


def stop_component(home: Home, name: str) -> None:
    """Stop one process and remove it, if it is there."""
    with home.changing():
        if wants(home, name):
            with step(f"stop {name}"):
                supervisor_client.remove(home, name)


def shut_down(home: Home) -> bool:
    """Stop everything, in reverse order of starting; return True if anything was running."""
    if not home.is_lake():
        return False
    with home.changing():
        was_up = is_up(home)
        with step("stop all components") if was_up else nullcontext():
            supervisor_client.stop(home)
    return was_up


def purge(home: Home) -> None:
    """Stop everything, and remove the lake's folder and a database folder outside of it."""
    shut_down(home)
    postgres_place.purge(home)
    shutil.rmtree(home.path, ignore_errors=True)


def is_up(home: Home) -> bool:
    """Return True if the lake was started and not stopped, even if its processes are dead."""
    return bool(_desired(home).specs)


def wants(home: Home, name: str) -> bool:
    """Return True if the process is among those that should run."""
    return _desired(home).spec(name) is not None


def components(home: Home) -> list[dict[str, Any]]:
    """List name, pid, state, port and log of the supervisor and each component; [] when down."""
    desired = _desired(home)
    if not desired.specs:
        return []
    observed = supervisor_client.observe(home)
    return [_supervisor(home, observed), *(_seen(spec, observed) for spec in desired.specs)]


def _ensure(home: Home, wanted: Sequence[Component], starting: Sequence[str]) -> None:
    """Wait until the components are ready, and show those that are starting."""
    names = [part.spec.name for part in wanted if part.spec.name in starting]
    with step(f"start {', '.join(names)}") if names else nullcontext():
        supervisor_client.ensure(home, wanted)


def _seen(spec: Spec, observed: Observed) -> dict[str, Any]:
    """Return a component's state; unreported, it is starting, or dead without a supervisor."""
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
    """Return the components in the order of starting."""
    source = [postgres.component(home, port["postgres"])] if embedded_postgres else []
    if not streaming:
        return [*source, aws.component(home, port["aws"])]
    return [
        *source,
        aws.component(home, port["aws"]),
        kafka.component(home, port["kafka"]),
        connect.component(home, port["connect"]),
    ]


def _starting(home: Home, wanted: list[Component], observed: Observed) -> list[str]:
    """Name the components that are dead or that run as another version described them.

    A running PostgreSQL is left out: it can be prepared only while it is down.
    """
    desired, found = _desired(home), []
    for spec in (part.spec for part in wanted):
        before = desired.spec(spec.name)
        is_changed = spec.name != postgres.NAME and before and before.differences(spec)
        if is_changed or spec.name not in observed.living():
            found.append(spec.name)
    return found


def _preparations(home: Home, port: dict[str, int]) -> dict[str, Callable[[], None]]:
    return {
        postgres.NAME: lambda: postgres.prepare(home),
        kafka.NAME: lambda: kafka.prepare(home, port["kafka"], port["kafka-controller"]),
        connect.NAME: lambda: connect.prepare(home, port["connect"], port["kafka"], port["aws"]),
    }
