"""A proxy in front of the local AWS that notes what each request needs a permission for.

Each job has its own proxy, so that a request's role is known. Requests are forwarded with the
headers that are signed, the host among them.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from cdclake.local.aws.http_server import Answer, Server
from tests.local.source_database import free_port
from tests.recorded_requests.permissions import Needed, permissions_of

# Of the connection, not of the request.
_DROPPED = {"connection", "transfer-encoding", "expect", "content-length", "date", "server"}


class RecordingProxy:
    """Application that forwards requests and notes the permissions that they need."""

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        self._address = parts.hostname or "", parts.port
        self._connections = threading.local()
        self.needed: set[Needed] = set()

    def __call__(self, environ: dict[str, Any], body: bytes) -> Answer:
        """Return the local AWS's answer; a request that it fails (5xx) is not noted."""
        answer = self._forward(environ, body)
        if answer[0] < 500:
            self.needed.update(permissions_of(environ, body, answer[0]))
        return answer

    def _forward(self, environ: dict[str, Any], body: bytes) -> Answer:
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_") or name == "CONTENT_TYPE"
        }
        connection = self._connection()
        connection.putrequest(
            environ["REQUEST_METHOD"],
            environ["REQUEST_URI"],
            skip_host=True,
            skip_accept_encoding=True,
        )
        for name, value in headers.items():
            if name not in _DROPPED and value:
                connection.putheader(name, value)
        connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        kept = {
            name: value
            for name, value in response.getheaders()
            if name.lower() not in _DROPPED or name.lower() == "content-length"
        }
        return response.status, kept, response.read()

    def _connection(self) -> http.client.HTTPConnection:
        """Return the connection of this thread: each client's connection has its thread here."""
        if not hasattr(self._connections, "one"):
            self._connections.one = http.client.HTTPConnection(*self._address, timeout=300)
        connection = self._connections.one
        assert isinstance(connection, http.client.HTTPConnection)
        return connection


@contextmanager
def recording(upstream: str) -> Iterator[tuple[str, RecordingProxy]]:
    """Serve a proxy on a free port until the block ends; yield its URL and the proxy."""
    proxy = RecordingProxy(upstream)
    port = free_port()
    with Server(port, proxy) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}", proxy
        finally:
            server.shutdown()
            thread.join()
