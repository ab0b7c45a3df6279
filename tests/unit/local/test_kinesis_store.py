"""Records that the local Kinesis keeps, and for how long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.kinesis.models import kinesis_backends

from cdclake.local.aws.index import Index
from cdclake.local.aws.kinesis_store import KinesisStore

REGION = "eu-central-1"
DAY_S = 86_400


@pytest.fixture
def backend() -> Iterator[Any]:
    found = kinesis_backends[DEFAULT_ACCOUNT_ID][REGION]
    yield found
    found.reset()


def test_records_are_kept_for_as_many_days_as_deployed(
    backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while the server runs for months: moto holds them in memory."""
    store = KinesisStore(Index(tmp_path / "index.db"))
    store.install()
    [shard] = backend.create_stream("logs", 1).shards.values()
    for _ in range(3):
        shard.put_record("a", "ZGF0YQ==", "")
    store.commit(REGION, "PutRecords")
    now = time.time()  # moto notes it for all records
    for days, kept in ((6, [1, 2, 3, 4]), (8, [5])):
        monkeypatch.setattr(time, "time", lambda days=days: now + days * DAY_S)
        shard.put_record("a", "ZGF0YQ==", "")
        store.commit(REGION, "PutRecord")
        stored = store.index.connection.execute("select sequence from kinesis_record")
        assert [*shard.records] == [row[0] for row in stored] == kept
