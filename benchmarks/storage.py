"""Where a contender's tables lie: in a folder of this machine, or in S3 and Glue some way off.

In a folder by default, since it costs everybody the same and next to nothing, Delta and Hudi
included, and leaves both cores to who is measured. Requests and round trips are what the other one
is for, and only Iceberg's contenders have a catalog to ask there.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

from benchmarks import latency_proxy
from benchmarks.iceberg_catalog import ENDPOINT
from benchmarks.session import PROJECT
from cdclake.local.aws.aws_server import HEALTH
from cdclake.local.components.connect import ConnectApi
from cdclake.local.components.kafka import Broker
from cdclake.local.lake.lake import aws_environment
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.credentials import Login

BUCKET = "bench"
_START_SECONDS = 60.0
_DIRECT = build_opener(ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Storage:
    """The address of the warehouse, and what the environment must say to reach it."""

    warehouse: str
    environment: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def in_folder(folder: Path) -> Iterator[Storage]:
    """An empty folder."""
    folder.mkdir(parents=True)
    yield Storage(str(folder))


@contextmanager
def far_away(folder: Path) -> Iterator[Storage]:
    """An empty bucket and catalog, 30 ms and 80 ms away; gone when the block ends."""
    with _aws(folder, is_far=True) as storage:
        yield storage


@contextmanager
def counted(folder: Path) -> Iterator[Storage]:
    """Yield the same without the distance: requests are counted, and answered at once."""
    with _aws(folder, is_far=False) as storage:
        yield storage


@contextmanager
def _aws(folder: Path, *, is_far: bool) -> Iterator[Storage]:
    folder.mkdir(parents=True)
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    keys = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            latency_proxy.command(port, folder / "aws", is_far=is_far),
            cwd=PROJECT,
            env={**os.environ, **keys},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(f"{address}{HEALTH}")
        _DIRECT.open(Request(f"{address}/{BUCKET}", method="PUT"), timeout=10).close()
        environment = {**aws_environment(endpoints_at(address)), ENDPOINT: address}
        yield Storage(f"s3://{BUCKET}/warehouse", environment)
    finally:
        server.terminate()
        server.wait()


def endpoints_at(address: str) -> Endpoints:
    """Return the endpoints of a lake that has an S3 and a Glue there, and nothing else."""
    login = Login("local", "local")
    broker, connect = Broker("", login), ConnectApi("", login)
    return Endpoints(None, broker, connect, address, address, "", login)


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            _DIRECT.open(address, timeout=2).close()
            return
        except (URLError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
