"""Stands in for Fluent Bit, which does not run here: a log file's lines, parsed, to a stream.

The expression is the very one that Fluent Bit is told; it is run by Python's `re`, not by Onigmo,
which Fluent Bit has. Otherwise it does as much of it as the tests need: whole lines of one file, in
batches that are sent again as long as they are refused.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from cdclake.web_logs.fluent_bit import EXPRESSION
from cdclake.web_logs.row import BODY_BYTES_SENT, STATUS

_BATCH = 500
_WAIT_S = 0.1
# Onigmo spells named groups without the P.
_LINE = re.compile(EXPRESSION.replace("(?<", "(?P<"))


class Output(Protocol):
    """Where batches go."""

    def send(self, records: Sequence[bytes]) -> list[bytes]:
        """Send them; those that were refused."""


class FirehoseOutput:
    """A stream of Firehose with Direct PUT."""

    def __init__(self, client: Any, stream: str) -> None:
        self._client, self._stream = client, stream

    def send(self, records: Sequence[bytes]) -> list[bytes]:
        """Put them directly."""
        told = self._client.put_record_batch(
            DeliveryStreamName=self._stream, Records=[{"Data": each} for each in records]
        )["RequestResponses"]
        return [each for each, answer in zip(records, told, strict=True) if "ErrorCode" in answer]


class KinesisOutput:
    """A stream of Kinesis; each record goes to the shard that its own bytes choose."""

    def __init__(self, client: Any, stream: str) -> None:
        self._client, self._stream = client, stream

    def send(self, records: Sequence[bytes]) -> list[bytes]:
        """Put them into the stream."""
        entries = [{"Data": each, "PartitionKey": str(hash(each))} for each in records]
        told = self._client.put_records(StreamName=self._stream, Records=entries)["Records"]
        return [each for each, answer in zip(records, told, strict=True) if "ErrorCode" in answer]


def parse(line: str) -> dict[str, Any] | None:
    """The fields of one line; None if the expression does not match it."""
    found = _LINE.search(line)
    if found is None:
        return None
    fields: dict[str, Any] = found.groupdict()
    return {**fields, STATUS: int(fields[STATUS]), BODY_BYTES_SENT: int(fields[BODY_BYTES_SENT])}


def forward(file: Path, output: Output) -> int:
    """Send every whole line of the file; how many. A line that does not match goes as it is."""
    lines = iter(file.read_text(encoding="utf-8", errors="replace").splitlines())
    records = (_record(line) for line in lines)
    count = 0
    for batch in _batches(records):
        count += len(batch)
        while batch := output.send(batch):
            time.sleep(_WAIT_S)
    return count


def _record(line: str) -> bytes:
    """As Fluent Bit spells it: without what is empty, and with a new line behind."""
    parsed = parse(line) or {"log": line, "source": "stdout"}
    return json.dumps({k: v for k, v in parsed.items() if v != ""}).encode() + b"\n"


def _batches(records: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = iter(records)
    while batch := list(islice(rest, _BATCH)):
        yield batch
