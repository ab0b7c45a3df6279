"""Where the lake is read over TLS, the server has to prove who it is."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import duckdb
import pytest

from cdclake.jobs.reader import duck
from cdclake.jobs.reader.duck import Reader
from tests.certificates import certified
from tests.unit.verify.lakes import make_plan, make_table

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of this host, by itself, with its key in the same file."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    file.write_text("".join(certified(HOST)))
    return file


@pytest.fixture
def asked(certificate: Path) -> Iterator[tuple[str, list[str]]]:
    """A server that has nothing: its address, and what it was asked for."""
    paths: list[str] = []

    class Empty(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Not to the tests' output."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = HTTPServer((HOST, 0), Empty)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"https://{HOST}:{server.server_port}", paths
    server.shutdown()


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


def read(endpoint: str, spill: Path) -> None:
    """Read an object that is not there."""
    plan = make_plan(make_table())
    reader = Reader(plan=plan, s3=endpoint, glue=endpoint, bucket="lake", spill=spill)
    with reader._session() as session:
        session.execute("SELECT * FROM read_text('s3://lake/metadata.json')")


def test_a_server_that_nobody_vouches_for_is_told_nothing(keys, asked, tmp_path):
    endpoint, paths = asked
    with pytest.raises(duckdb.IOException, match=r"(?i)ssl|certificate"):
        read(endpoint, tmp_path)
    assert paths == []


def test_one_that_is_vouched_for_is_asked(keys, asked, certificate, tmp_path, monkeypatch):
    endpoint, paths = asked
    monkeypatch.setattr(duck, "AUTHORITIES", certificate)
    with pytest.raises(duckdb.HTTPException, match="404"):
        read(endpoint, tmp_path)
    assert paths and all(path.startswith("/lake/metadata.json") for path in paths)


def test_a_query_loads_no_extension(keys: None, tmp_path: Path) -> None:
    reader = Reader(
        plan=make_plan(make_table()), s3="http://127.0.0.1:1", glue="http://127.0.0.1:1",
        bucket="b", spill=tmp_path / "spill",
    )  # fmt: skip
    other = tmp_path / "other.duckdb_extension"
    other.write_bytes(duck.extension_file("avro").read_bytes())
    duck._verified.clear()
    for is_verified in (False, True):
        assert bool(duck._verified) == is_verified
        with reader.open([]) as session:
            [[allowed]] = session.execute(
                "SELECT current_setting('allow_unsigned_extensions')"
            ).fetchall()
            assert allowed == is_verified
            with pytest.raises(duckdb.PermissionException):
                session.execute(f"LOAD '{other}'")
