"""TCP keep-alive of the connections that operators' long calls of functions wait on."""

from __future__ import annotations

import json
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from moto import mock_aws
from urllib3.util import connection

from cdclake.deployed.aws_functions import DeployedFunction

NAT_GATEWAY_IDLE_S = 350


class Answer(BaseHTTPRequestHandler):
    """Lambda, with an answer at once."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        content = json.dumps({"statements": 1}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the output of the tests short."""


@pytest.mark.skipif(sys.platform == "darwin", reason="it has TCP_KEEPALIVE instead")
def test_a_waiting_connection_outlives_a_nat_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    create = connection.create_connection

    def note(*args: Any, **more: Any) -> socket.socket:
        made = create(*args, **more)
        is_kept = made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        seen.append((is_kept, made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)))
        return made

    monkeypatch.setattr(connection, "create_connection", note)
    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", url)
    with mock_aws(config={"core": {"passthrough": {"urls": [".*127.0.0.1.*"]}}}):
        answer = DeployedFunction("shop-source-sql").call({}, "", if_lost="")
    server.shutdown()
    server.server_close()
    assert answer == {"statements": 1}
    [(is_kept, idle_s)] = seen
    assert is_kept == 1
    assert idle_s < NAT_GATEWAY_IDLE_S
