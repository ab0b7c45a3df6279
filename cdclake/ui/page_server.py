"""Server of the local page: files of the package without a token, answers only with one.

Any web page that is open in a browser can send requests to this machine. So the token is compared
for every answer, it travels in a header that other pages cannot set, and the Host header must be
this machine's: a foreign name that resolves to 127.0.0.1 is refused.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from cdclake.errors import CdcError, InputError, NotRunning
from cdclake.extras import missing_extra
from cdclake.host_header import is_this_machine

Query = Mapping[str, Sequence[str]]
Answer = Callable[[Query], Mapping[str, Any]]

API = "/api/"
_STATIC = Path(__file__).resolve().parent / "static"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_JSON = "application/json"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
_IDLE_CONNECTION_S = 60.0
_MAX_EXACT_INTEGER = 2**53 - 1  # of JavaScript: ids of snapshots are larger


class _Reply(NamedTuple):
    """Response to one request."""

    status: HTTPStatus
    kind: str
    body: bytes


class PageServer(ThreadingHTTPServer):
    """Server of the page and of the answers; an answer of a name is computed once at a time.

    So a slow answer never delays the overview.
    """

    def __init__(self, port: int, token: str, answers: Mapping[str, Answer]) -> None:
        super().__init__(("127.0.0.1", port), PageHandler)
        self._token, self._answers = token, answers
        self._locks = {name: Lock() for name in answers}
        self._files = {f"/{file.name}": file for file in _STATIC.iterdir() if file.suffix in _TYPES}
        self._files["/"] = self._files.pop("/index.html")

    def reply(self, hosts: Sequence[str], target: str, authorization: str) -> _Reply:
        """Return the reply to a request for this target."""
        if not is_this_machine(hosts, self.server_port):
            return _refused(HTTPStatus.FORBIDDEN, "the Host header names another machine")
        url = urlsplit(target)
        if (file := self._files.get(url.path)) is not None:
            return _Reply(HTTPStatus.OK, _TYPES[file.suffix], file.read_bytes())
        name = url.path.removeprefix(API)
        if not url.path.startswith(API) or name not in self._answers:
            return _refused(HTTPStatus.NOT_FOUND, "the page has no such address")
        if not _is_token(authorization, self._token):
            return _refused(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong")
        with self._locks[name]:
            return _answered(self._answers[name], parse_qs(url.query, keep_blank_values=True))


class PageHandler(BaseHTTPRequestHandler):
    """Request of a browser: GET, and nothing else."""

    server: PageServer
    server_version, sys_version = "cdclake", ""
    timeout = _IDLE_CONNECTION_S

    def do_GET(self) -> None:
        """Send the server's reply."""
        hosts = self.headers.get_all("Host") or []
        reply = self.server.reply(hosts, self.path, self.headers.get("Authorization", ""))
        self.send_response(reply.status)
        self.send_header("Content-Type", f"{reply.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def end_headers(self) -> None:
        """Add the headers that every reply has."""
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log no request: an open page sends one every few seconds."""


def page_server(port: int, token: str, answers: Mapping[str, Answer]) -> PageServer:
    """Bind the server to 127.0.0.1; port 0 is any free one.

    Raises:
        InputError: if the port is not free
    """
    try:
        return PageServer(port, token, answers)
    except OSError as error:
        raise InputError(
            f"port {port} of 127.0.0.1 cannot be used: {error.strerror}", "choose another --port"
        ) from None


def _is_token(authorization: str, token: str) -> bool:
    """Compare in a time that does not depend on how many characters are right."""
    return hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode())


def _answered(answer: Answer, query: Query) -> _Reply:
    try:
        found = answer(query)
    except CdcError as error:
        return _failed(error)
    except Exception as error:  # its text may contain a login
        if isinstance(error, ModuleNotFoundError) and (known := missing_extra(error)) is not None:
            return _failed(known)
        kind = type(error).__name__
        remedy = "run `cdclake status` in a terminal, which reports it in full"
        return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "unexpected", f"error: {kind}", remedy)
    return _Reply(HTTPStatus.OK, _JSON, json.dumps(_exact(found), default=str).encode())


def _exact(value: Any) -> Any:
    """Return the value with a text in place of each integer that JavaScript would round."""
    if isinstance(value, Mapping):
        return {key: _exact(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(each) for each in value]
    is_large = isinstance(value, int) and abs(value) > _MAX_EXACT_INTEGER
    return str(value) if is_large else value


def _failed(error: CdcError) -> _Reply:
    kinds = {InputError: HTTPStatus.BAD_REQUEST, NotRunning: HTTPStatus.CONFLICT}
    status = next((kinds[kind] for kind in kinds if isinstance(error, kind)), None)
    return _error(status or HTTPStatus.BAD_GATEWAY, error.code, error.message, error.remedy)


def _refused(status: HTTPStatus, message: str) -> _Reply:
    return _error(status, "refused", message, "open the address that `cdclake ui` has printed")


def _error(status: HTTPStatus, code: str, message: str, remedy: str) -> _Reply:
    error = {"code": code, "message": message, "remedy": remedy}
    return _Reply(status, _JSON, json.dumps({"ok": False, "error": error}).encode())
