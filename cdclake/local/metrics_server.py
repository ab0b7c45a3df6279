"""Endpoint of a lake's metrics for a Prometheus on this machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from cdclake.errors import CdcError, InputError
from cdclake.host_header import is_this_machine
from cdclake.prometheus_text import CONTENT_TYPE

PATH = "/metrics"
_WAIT_S = 10.0  # for the scrape before; Prometheus gives up after that time by default


class _MetricsServer(ThreadingHTTPServer):
    """Server on 127.0.0.1; each scrape calls `read`, one at a time."""

    def __init__(self, port: int, read: Callable[[], str]) -> None:
        super().__init__(("127.0.0.1", port), _Scrape)
        self.read, self.reading = read, Lock()


class _Scrape(BaseHTTPRequestHandler):
    server: _MetricsServer

    def do_GET(self) -> None:
        if not is_this_machine(self.headers.get_all("Host") or [], self.server.server_port):
            why = "the Host header is not 127.0.0.1 or localhost with the port"
            self.send_error(HTTPStatus.FORBIDDEN, explain=why)
            return
        if self.path != PATH:
            self.send_error(HTTPStatus.NOT_FOUND, f"the metrics are under {PATH}")
            return
        if not self.server.reading.acquire(timeout=_WAIT_S):
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, "an earlier scrape still runs")
            return
        try:
            body = self.server.read().encode()
        except CdcError as error:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, explain=error.message)
            return
        finally:
            self.server.reading.release()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):  # it has given up
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log no request: Prometheus sends one every few seconds."""


def metrics_server(port: int, read: Callable[[], str]) -> ThreadingHTTPServer:
    """Bind the server to 127.0.0.1; each scrape calls `read`, one at a time.

    A scrape fails if the lake cannot be read, or is still being read for an earlier one. Requests
    whose Host header is not 127.0.0.1 or localhost are refused.
    Raise InputError if the port is not free.
    """
    try:
        return _MetricsServer(port, read)
    except OSError as error:
        raise InputError(
            f"port {port} of 127.0.0.1 cannot be used: {error.strerror}", "choose another --serve"
        ) from None
