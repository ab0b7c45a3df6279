"""Records of Direct PUT that the function drops: they are counted once, when they are delivered."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cdclake.local.firehose.delivery import Delivery
from cdclake.local.firehose.function import LocalFunction
from cdclake.local.firehose.journal import Journal, JournalSource
from tests.recorded.firehose import Kept, Logs, delivered, stream_of
from tests.recorded.recording import Recording

PLAN = delivered(Recording.load("changes").plan)
STREAM = stream_of(PLAN.table("plain"), name="logs", source="direct_put", topic="")


def handler(event: Mapping[str, Any], _: Any) -> dict[str, Any]:
    """Answer each record with the result that is its value."""
    return {
        "records": [
            {
                "recordId": record["recordId"],
                "result": base64.b64decode(record["data"]).decode(),
                "data": record["data"],
            }
            for record in event["records"]
        ]
    }


class Unanswered(JournalSource):
    """A source that ends before it has committed."""

    def commit(self, offsets: Mapping[int, int], dropped: int = 0) -> None:
        raise ConnectionError


def delivery_of(source: JournalSource) -> Delivery:
    return Delivery(
        STREAM, PLAN.lake_database, source=source, tables=Logs(PLAN), errors=Kept(),
        function=LocalFunction(handler, STREAM),
    )  # fmt: skip


def test_dropped_records_are_counted_once_after_a_crash(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    journal.append("x-logs", [b"Dropped", b"ProcessingFailed", b"Dropped"])
    with pytest.raises(ConnectionError):
        delivery_of(Unanswered(journal, "x-logs")).drain()
    assert (journal.waiting("x-logs"), journal.dropped("x-logs")) == (3, 0)
    again = delivery_of(JournalSource(journal, "x-logs"))
    again.drain()
    assert (journal.waiting("x-logs"), journal.dropped("x-logs")) == (0, 2)
    journal.append("x-logs", [b"ProcessingFailed", b"Dropped"])
    again.drain()
    counted = Journal(tmp_path / "journal.db")
    assert (counted.acknowledged("x-logs"), counted.dropped("x-logs")) == (5, 3)
    assert counted.dropped("x-other") == 0
