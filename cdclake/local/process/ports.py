"""The lake's ports: chosen once, and kept as long as they are free.

They are below the kernel's ephemeral range. A port inside that range can be taken by any outgoing
connection while its component is down, even by one of the lake's clients that tries to reconnect.
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
    """Return True if a server could listen there now (sockets in TIME_WAIT do not count)."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def gets_free(port: int) -> bool:
    """Return True if the port becomes free within RELEASE_WAIT_S.

    A killed JVM is already a zombie while its last threads still hold its sockets.
    """
    deadline = time.monotonic() + RELEASE_WAIT_S
    while not is_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def assign(home: Home, living: Collection[str]) -> dict[str, int]:
    """Assign a port to every component, and save the ports in the home.

    If no component is alive, a port that another process has taken is replaced. Otherwise a taken
    port is an error, since the living components connect to the saved ports.
    """
    saved = {str(name): int(port) for name, port in read_json(home.ports_file).items()}
    chosen: dict[str, int] = {}
    for name in NAMES:
        port = saved.get(name)
        owner = component_of(name)
        if port is None or not (owner in living or gets_free(port)):
            if port is not None and living:
                raise _taken(owner, port)
            port = choose({*saved.values(), *chosen.values()})
        chosen[name] = port
    if chosen != saved:
        write_atomically(home.ports_file, json.dumps(chosen, indent=1) + "\n")
    return chosen


def component_of(port_name: str) -> str:
    """Return the component of a port; `kafka-controller` is a second port of `kafka`."""
    return port_name.partition("-")[0]


def choose(not_these: Collection[int] = ()) -> int:
    """Choose a port at random, so that two lakes which start at once rarely choose the same."""
    top = _lowest_ephemeral()
    for _ in range(1000):
        port = random.randrange(LOWEST_PORT, top)
        if port not in not_these and is_free(port):
            return port
    raise ComponentFailed(
        f"no free port on 127.0.0.1 between {LOWEST_PORT} and {top}",
        "stop the processes that use them",
    )


def _lowest_ephemeral() -> int:
    try:
        lowest = int(EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError):
        return 32768  # Linux's default, for a /proc that hides it
    return lowest if lowest > LOWEST_PORT + 1000 else 65535


def _taken(component: str, port: int) -> ComponentFailed:
    return ComponentFailed(
        f"port {port} on 127.0.0.1, assigned to {component}, is in use by another process",
        f"free it (`ss -ltnp 'sport = :{port}'` shows the process), "
        "or run `cdclake down` and `cdclake up`, which then chooses another port",
        component=component,
    )
