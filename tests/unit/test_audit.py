"""`make audit` against a stand-in for osv.dev: findings, exceptions and their age."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from scripts import audit
from scripts.audit import Dependency, Finding

CLIENTS = Dependency("Maven", "org.apache.kafka:kafka-clients", "3.7.2")
OTHER = Dependency("PyPI", "moto", "5.0.0")
EXCEPTION = {
    "id": "CVE-1",
    "package": CLIENTS.package,
    "version": "3.7.2",
    "reviewed": "2026-11-25",
}


class Osv(BaseHTTPRequestHandler):
    """Knows one vulnerability, of the Kafka clients."""

    def do_POST(self) -> None:
        queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        names = [query["package"]["name"] for query in queries]
        known = {CLIENTS.package: {"vulns": [{"id": "GHSA-1", "modified": "x"}]}}
        self._answer({"results": [known.get(name, {}) for name in names]})

    def do_GET(self) -> None:
        assert self.path == "/vulns/GHSA-1"
        self._answer({"id": "GHSA-1", "aliases": ["CVE-1"]})

    def _answer(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the tests' output clean."""


@pytest.fixture
def osv() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Osv) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_findings_have_their_other_names(osv: str) -> None:
    assert list(audit.ask_osv([CLIENTS, OTHER], osv)) == [
        Finding(CLIENTS, "GHSA-1", frozenset({"CVE-1"}))
    ]


@pytest.mark.parametrize(
    ("changed", "today", "remains"),
    [
        ({}, date(2026, 11, 26), False),
        ({"version": "3.7.1"}, date(2026, 11, 26), True),
        ({"id": "CVE-2"}, date(2026, 11, 26), True),
        ({}, date(2027, 11, 26), True),
    ],
    ids=["accepted", "another version", "another id", "reviewed too long ago"],
)
def test_an_exception_accepts_one_version_for_a_while(
    changed: dict[str, str], today: date, remains: bool
) -> None:
    finding = Finding(CLIENTS, "GHSA-1", frozenset({"CVE-1"}))
    exceptions = [{**EXCEPTION, **changed}]
    assert list(audit.without_exceptions([finding], exceptions, today)) == [finding] * remains


def test_every_locked_ecosystem_is_read() -> None:
    python = {dependency.package for dependency in audit.python_dependencies()}
    java = {dependency.package for dependency in audit.java_dependencies(["debezium"])}
    assert {"boto3", "pyspark", "duckdb"} <= python
    assert {"io.debezium:debezium-connector-postgres", "org.postgresql:postgresql"} <= java


def test_committed_exceptions_are_complete_and_of_present_versions() -> None:
    lock = (audit.ROOT / "jars.lock").read_text()
    python = {(d.package, d.version) for d in audit.python_dependencies()}
    for known in json.loads(audit.EXCEPTIONS.read_text()):
        assert known["reason"] and date.fromisoformat(known["reviewed"])
        jar = f"/{known['package'].rpartition(':')[2]}-{known['version']}.jar"
        assert jar in lock or (known["package"], known["version"]) in python, known
