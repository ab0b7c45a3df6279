"""A threaded HTTP/1.1 server that keeps its connections.

werkzeug's own closes every connection and then waits 10 ms for stragglers, which a client that
makes ten requests a commit feels. Here the whole body is read before the application is called,
so the next request's line is always where it should be.
"""

from __future__ import annotations

import socketserver
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, cast

from werkzeug.serving import WSGIRequestHandler

Answer = tuple[int, Mapping[str, Any], bytes]  # status, headers, body
Application = Callable[[dict[str, Any], bytes], Answer]  # of a WSGI environment and the body


class Server(socketserver.ThreadingTCPServer):
    """One thread a connection; the attributes are those that werkzeug's handler asks for."""

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
    """werkzeug's reading of a request, with our own answer to it.

    Headers with underscores are dropped, as werkzeug does and S3 does not: the lake sends none.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 300  # an idle connection holds a thread
    wbufsize = -1  # status, headers and a small body leave in one packet

    def run_wsgi(self) -> None:
        """What werkzeug calls for a request of any method."""
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.wfile.flush()
        environ = self.make_environ()
        body = self._read_body(environ)
        app = cast(Server, self.server).app
        try:
            answer = app(environ, body)
        except Exception:
            traceback.print_exc(file=sys.stderr)
            answer = 500, {}, b""
        self._respond(*answer)

    def _read_body(self, environ: dict[str, Any]) -> bytes:
        """All of it, also of a chunked transfer (whose decoding werkzeug has put in place)."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return bytes(environ["wsgi.input"].read())
        return bytes(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _respond(self, status: int, headers: Mapping[str, Any], content: bytes) -> None:
        """Our own count of the bytes stands, but for HEAD, whose answer has a body elsewhere."""
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
        """Only what went wrong: a lake makes thousands of requests a minute."""
        if type != "info":
            sys.stderr.write(f"{type}: {message % args}\n")
