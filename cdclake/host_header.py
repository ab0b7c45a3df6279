"""Check of the Host header: local servers refuse a foreign name that resolves to 127.0.0.1.

A web page may give its own name the address 127.0.0.1. To the browser the answers of a local server
are then of that page's origin, which may read them.
"""

from __future__ import annotations

from collections.abc import Sequence

_NAMES = ("127.0.0.1", "localhost")
_HTTP_PORT = 80  # which a client need not name


def is_this_machine(hosts: Sequence[str], port: int) -> bool:
    """Check that a request to this port has one Host header, which names this machine.

    >>> is_this_machine(["localhost:9188"], 9188), is_this_machine(["evil.example:9188"], 9188)
    (True, False)
    """
    named = {f"{name}:{port}" for name in _NAMES} | {*(_NAMES if port == _HTTP_PORT else ())}
    return len(hosts) == 1 and hosts[0] in named
