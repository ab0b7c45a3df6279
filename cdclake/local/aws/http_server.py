"""Threaded HTTP/1.1 server with persistent connections.

werkzeug's server closes every connection and then waits 10 ms for remaining data, which is
noticeable at ten requests per commit. Here the whole body is read before the application is called,
so that the next request always starts at the right place.
"""

from __future__ import annotations

import socketserver
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, cast

from werkzeug.serving import WSGIRequestHandler

Answer = tuple[int, Mapping[str, Any], bytes]  # status, headers, body
Application = Callable[[dict[str, Any], bytes], Answer]  # takes a WSGI environment and the body


class ConnectionDropped(Exception):
    """Signal of an application that its client gets no response: the connection is closed."""


class Server(socketserver.ThreadingTCPServer):
    """Server with one thread per connection, and the attributes that werkzeug's handler reads."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128
    ssl_context = None
    multithread, multiprocess = True, False
    _server_version = "cdclake"

    def __init__(self, port: int, app: Application) -> None:
        self.app = app
        super().__init__(("127.0.0.1", port), Handler)


class Handler(WSGIRequestHandler):
    """Request handler that parses with werkzeug and writes the response itself.

    werkzeug drops headers with underscores. S3 does not, but the lake sends none.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 300  # an idle connection holds a thread
    wbufsize = -1  # status, headers and a small body leave in one packet

    def run_wsgi(self) -> None:
        """Handle a request of any method; called by werkzeug."""
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.wfile.flush()
        environ = self.make_environ()
        body = self._read_body(environ)
        app = cast(Server, self.server).app
        try:
            answer = app(environ, body)
        except ConnectionDropped:
            self.close_connection = True
            return
        except Exception:
            traceback.print_exc(file=sys.stderr)
            answer = 500, {}, b""
        self._respond(*answer)

    def _read_body(self, environ: dict[str, Any]) -> bytes:
        """Read the whole body; werkzeug has already installed the decoder of chunked transfers."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return bytes(environ["wsgi.input"].read())
        return bytes(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _respond(self, status: int, headers: Mapping[str, Any], content: bytes) -> None:
        """Send the response; Content-Length is computed, except for HEAD, which has no body."""
        self.send_response(status)
        length = str(len(content))
        for name, value in headers.items():
            if name.lower() != "content-length":
                self.send_header(name, str(value))
            elif self.command == "HEAD":
                length = str(value)
        if status not in (204, 304):
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.wfile.flush()

    def log(self, type: str, message: str, *args: Any) -> None:
        """Log only errors and warnings: a lake makes thousands of requests a minute."""
        if type != "info":
            sys.stderr.write(f"{type}: {message % args}\n")
