"""Calls that Firehose rejects or does not answer: what is put again, by boto3 and a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import boto3
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from cdclake.functions.firehose_redrive_puts.firehose_redrive_puts import PUT_CALLS
from cdclake.redrive.batch_writer import BatchWriter, PutRejected


class Stream(ThreadingHTTPServer):
    """Firehose that gives these answers one after the other; None: it closes the connection."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[str | None] = []
        self.calls = 0


class _Handler(BaseHTTPRequestHandler):
    server: Stream

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.server.answers[min(self.server.calls, len(self.server.answers) - 1)]
        self.server.calls += 1
        if answer is None:
            self.close_connection = True
            return
        accepted = {"RequestResponses": [{"RecordId": "r"} for _ in request["Records"]]}
        body = json.dumps(accepted if not answer else {"__type": answer}).encode()
        self.send_response(503 if answer.startswith("Service") else 400 if answer else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def stream() -> Iterator[Stream]:
    server = Stream()
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def put(stream: Stream, *answers: str | None) -> int:
    """Put a record with the settings of the deployed function; return the number of calls."""
    stream.answers = [*answers]
    client: Any = boto3.client(
        "firehose", endpoint_url=f"http://127.0.0.1:{stream.server_port}", region_name="us-east-1",
        aws_access_key_id="any", aws_secret_access_key="key", config=PUT_CALLS,
    )  # fmt: skip
    writer = BatchWriter(client, "shop-clicks", pause=lambda _: None)
    writer.add(b"{}")
    writer.flush()
    return stream.calls


def test_a_call_whose_answer_is_lost_is_not_repeated(stream: Stream) -> None:
    with pytest.raises(BotoCoreError):
        put(stream, None, "")
    assert stream.calls == 1


def test_a_rejected_call_is_repeated(stream: Stream) -> None:
    assert put(stream, "ServiceUnavailableException", "ThrottlingException", "") == 3


def test_a_call_that_stays_rejected_names_the_error(stream: Stream) -> None:
    with pytest.raises(PutRejected, match="1 records: ServiceUnavailableException"):
        put(stream, "ServiceUnavailableException")


def test_any_other_error_is_raised_at_once(stream: Stream) -> None:
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        put(stream, "ResourceNotFoundException")
    assert stream.calls == 1
