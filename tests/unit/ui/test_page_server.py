"""The page's server: token, Host header, methods, headers, errors and its files."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cdclake.errors import ComponentFailed, InputError, NotRunning
from cdclake.ui import page_server as server_module
from cdclake.ui.page_server import PageServer, Query, page_server
from tests.unit.ui.answers import HOSTILE

TOKEN = "right"
STATIC = Path(server_module.__file__).parent / "static"
RAISED: dict[str, Any] = {
    "input": InputError("no table x", "choose another"),
    "gone": NotRunning("no lake", "start one"),
    "aws": ComponentFailed("no answer", "wait"),
    "extra": ModuleNotFoundError("no", name="aws_cdk"),
    "bug": RuntimeError("password=hunter22"),
}


def _echo(query: Query) -> Mapping[str, Any]:
    return {"ok": True, "query": query}


def _integers(_: Query) -> Mapping[str, Any]:
    return {"ids": [2**62 + 1], "row": {"small": 2**53 - 1, "negative": -(2**53), "yes": True}}


def _raise(query: Query) -> Mapping[str, Any]:
    raise RAISED[query["kind"][0]]


@pytest.fixture
def server() -> Iterator[PageServer]:
    with page_server(0, TOKEN, {"echo": _echo, "fail": _raise, "integers": _integers}) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def _ask(
    server: PageServer, target: str, method: str = "GET", **headers: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    given = {"Host": f"127.0.0.1:{server.server_port}", **headers}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.putrequest(method, target, skip_host=True)
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders()
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, reply.headers, body


def _authorized(server: PageServer, target: str) -> tuple[int, Any]:
    code, _, body = _ask(server, target, Authorization=f"Bearer {TOKEN}")
    return code, json.loads(body)


def test_answers_need_the_token(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
        assert _ask(server, "/api/echo", **given)[0] == 401
    assert _ask(server, f"/api/echo?token={TOKEN}")[0] == 401
    assert _ask(server, "/api/echo", Authorization="Bearer \xe9")[0] == 401
    assert _authorized(server, "/api/echo?key=1&key=") == (
        200, {"ok": True, "query": {"key": ["1", ""]}},
    )  # fmt: skip


def test_an_integer_that_a_browser_would_round_is_a_text(server: PageServer) -> None:
    assert _authorized(server, "/api/integers")[1] == {
        "ids": ["4611686018427387905"],
        "row": {"small": 2**53 - 1, "negative": "-9007199254740992", "yes": True},
    }


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "[::1]:PORT", ""])
def test_a_foreign_host_is_refused(server: PageServer, host: str) -> None:
    given = host.replace("PORT", str(server.server_port))
    for target in ("/", "/page.js", "/api/echo"):
        code, _, body = _ask(server, target, Host=given, Authorization=f"Bearer {TOKEN}")
        assert code == 403 and "Host" in json.loads(body)["error"]["message"]
    assert _ask(server, "/", Host=f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_only_get_is_served(server: PageServer, method: str) -> None:
    code, headers, _ = _ask(server, "/api/echo", method, Authorization=f"Bearer {TOKEN}")
    assert code == 501 and "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    "target", ["/", "/page.css", "/page.js", "/nothing", "/api/echo", "/../page_server.py"]
)
def test_every_reply_forbids_other_hosts(server: PageServer, target: str) -> None:
    _, headers, _ = _ask(server, target)
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "*" not in policy
    assert set(re.findall(r"(?:script|style|connect)-src ([^;]+)", policy)) == {"'self'"}
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_only_files_of_the_page_are_served(server: PageServer) -> None:
    for target in ("/../page_server.py", "/static/page.js", "/%2e%2e/page_server.py", "/api/",
                   "/api/nothing", "http://evil.example/page"):  # fmt: skip
        assert _ask(server, target)[0] == 404
    for path in STATIC.iterdir():
        target = "/" if path.name == "index.html" else f"/{path.name}"
        assert _ask(server, target)[2] == path.read_bytes()


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [("input", 400, "no table x"), ("gone", 409, "no lake"), ("aws", 502, "no answer")],
)
def test_errors_have_message_and_remedy(
    server: PageServer, kind: str, code: int, message: str
) -> None:
    found, answer = _authorized(server, f"/api/fail?kind={kind}")
    assert (found, answer["ok"], answer["error"]["message"]) == (code, False, message)
    assert answer["error"]["remedy"] == RAISED[kind].remedy


def test_a_missing_extra_is_named(server: PageServer) -> None:
    code, answer = _authorized(server, "/api/fail?kind=extra")
    assert code == 400 and "make setup" in answer["error"]["remedy"]


def test_an_unexpected_error_does_not_show_its_text(server: PageServer) -> None:
    code, answer = _authorized(server, "/api/fail?kind=bug")
    assert code == 500 and "RuntimeError" in answer["error"]["message"]
    assert "hunter22" not in json.dumps(answer)


def test_hostile_values_are_json_and_nothing_else(server: PageServer) -> None:
    quoted = HOSTILE.replace(" ", "%20").replace('"', "%22")
    _, headers, body = _ask(server, f"/api/echo?v={quoted}", Authorization=f"Bearer {TOKEN}")
    assert headers["Content-Type"].startswith("application/json")
    assert json.loads(body)["query"]["v"] == [HOSTILE]


def test_a_used_port_is_refused(server: PageServer) -> None:
    with pytest.raises(InputError, match="cannot be used"):
        page_server(server.server_port, TOKEN, {})


FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser"
    r"|createContextualFragment|srcdoc|style=|\bon[a-z]+=|https?://|//[a-z]+\.[a-z]+/"
)


@pytest.mark.parametrize("path", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_files_make_text_of_values_and_ask_no_other_host(path: Path) -> None:
    assert FORBIDDEN.findall(path.read_text()) == []


@pytest.mark.parametrize(
    "text", ["a.innerHTML = b", '<p onclick="x">', "fetch('https://a.b')", '<p style="x">']
)
def test_the_search_finds_what_is_forbidden(text: str) -> None:
    assert FORBIDDEN.search(text)
