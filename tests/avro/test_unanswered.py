"""The converter with an Apicurio registry that does not answer: its events are tried again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from cdclake.debezium.avro_converter import avro_settings
from cdclake.plan import Plan
from tests.avro.converters import failure
from tests.avro.samples import TOPIC, event
from tests.local.source_database import free_port

RETRIED = "org.apache.kafka.connect.errors.RetriableException: the schema registry does not answer"


def failure_with(url: str) -> str:
    """Return how the converter fails with the registry at this address."""
    plan = Plan(
        name="shop", source_database="shop", lake_database="lake", tables=(), format="avro",
        registry=url,
    )  # fmt: skip
    return failure(avro_settings(plan, None), url, (TOPIC, event()))


class Failing(BaseHTTPRequestHandler):
    """Server whose answers have the status and the body that the path starts with."""

    def do_POST(self) -> None:
        """Answer a schema."""
        self.rfile.read(int(self.headers["Content-Length"]))
        status, name = self.path.split("/")[1:3]
        error = {"error_code": int(status), "name": name, "message": "x"}
        body = b"no upstream" if name == "proxy" else json.dumps(error).encode()
        self.send_response(int(status))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write no log."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of such a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Failing) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.mark.slow
def test_a_registry_that_is_gone_is_tried_again() -> None:
    assert failure_with(f"http://127.0.0.1:{free_port()}") == RETRIED


@pytest.mark.parametrize(
    "answer",
    [
        "503/proxy",
        pytest.param("500/RegistryStorageException", marks=pytest.mark.slow),
        pytest.param("429/TooManyRequests", marks=pytest.mark.slow),
    ],
)
def test_a_registry_that_fails_is_tried_again(server: str, answer: str) -> None:
    assert failure_with(f"{server}/{answer}") == RETRIED


@pytest.mark.slow
def test_a_refused_request_fails_the_task(server: str) -> None:
    found = failure_with(f"{server}/400/BadRequestException")
    assert found.startswith("org.apache.kafka.connect.errors.DataException: topic ")
