"""The lake's ports: chosen once, kept while they are free.

They lie below the kernel's ephemeral range. A port inside it can be taken by any outgoing
connection while its component is down, even by a client of ours that reconnects to itself.
"""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import Collection
from pathlib import Path

from cdclake.errors import ComponentFailed
from cdclake.local.process.home import Home, read_json, write_atomically

NAMES = ("postgres", "kafka", "kafka-controller", "connect", "aws", "firehose")
LOWEST_PORT = 15000
RELEASE_WAIT_S = 5.0
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def is_free(port: int) -> bool:
    """Whether a server could listen there now (sockets in TIME_WAIT do not count)."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def gets_free(port: int) -> bool:
    """Whether it is free soon: a killed JVM is a zombie, gone to every eye, while its last threads
    still hold its sockets."""
    deadline = time.monotonic() + RELEASE_WAIT_S
    while not is_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def assign(home: Home, living: Collection[str]) -> dict[str, int]:
    """Every component's port, saved in the home.

    With nothing of ours alive, a port that a stranger took meanwhile is replaced. While some of
    us live, they know the others by their saved ports, so a taken port is an error.
    """
    saved = {str(name): int(port) for name, port in read_json(home.ports_file).items()}
    chosen: dict[str, int] = {}
    for name in NAMES:
        port = saved.get(name)
        owner = component_of(name)
        if port is None or not (owner in living or gets_free(port)):
            if port is not None and living:
                raise _taken(owner, port)
            port = _choose({*saved.values(), *chosen.values()})
        chosen[name] = port
    if chosen != saved:
        write_atomically(home.ports_file, json.dumps(chosen, indent=1) + "\n")
    return chosen


def component_of(port_name: str) -> str:
    """`kafka-controller` is a second port of `kafka`."""
    return port_name.partition("-")[0]


def _choose(not_these: Collection[int]) -> int:
    """At random, so that two lakes which start at once rarely want the same one."""
    top = _lowest_ephemeral()
    for _ in range(1000):
        port = random.randrange(LOWEST_PORT, top)
        if port not in not_these and is_free(port):
            return port
    raise ComponentFailed(
        f"no free port on 127.0.0.1 between {LOWEST_PORT} and {top}", "end what holds them"
    )


def _lowest_ephemeral() -> int:
    try:
        lowest = int(EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError):
        return 32768  # Linux's default, for a /proc that hides it
    return lowest if lowest > LOWEST_PORT + 1000 else 65535


def _taken(component: str, port: int) -> ComponentFailed:
    return ComponentFailed(
        f"port {port} on 127.0.0.1, which {component} had, was taken by another process",
        f"free it (`ss -ltnp 'sport = :{port}'` names the holder), "
        "or run `cdclake down` and `cdclake up`, which then chooses another",
        component=component,
    )
