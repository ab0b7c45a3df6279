"""Endpoint of a lake's metrics for a Prometheus on this machine."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from cdclake.errors import InputError
from cdclake.prometheus_text import CONTENT_TYPE

PATH = "/metrics"


def metrics_server(port: int, read: Callable[[], str]) -> ThreadingHTTPServer:
    """Bind the server to 127.0.0.1; each scrape calls `read`, one at a time.

    Raise InputError if the port is not free.
    """
    reading = Lock()

    class Scrape(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != PATH:
                self.send_error(HTTPStatus.NOT_FOUND, f"the metrics are under {PATH}")
                return
            with reading:
                body = read().encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log no request: Prometheus sends one every few seconds."""

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Scrape)
    except OSError as error:
        raise InputError(
            f"port {port} of 127.0.0.1 cannot be used: {error.strerror}", "choose another --serve"
        ) from None
