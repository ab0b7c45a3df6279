"""moto's Kinesis, stored in SQLite: streams with a fixed number of shards, and their records.

Unlike Kinesis: records older than the retention are removed once a day and at each start; other
properties of a stream do not survive a restart (no tags, consumers, encryption); requests to split
or merge shards are rejected.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.kinesis.models import KinesisBackend, Record, Shard, Stream, kinesis_backends

from cdclake.debezium.topics import RETENTION_DAYS
from cdclake.local.aws.index import Index

RETENTION_S = RETENTION_DAYS * 86_400  # as deployed
_FORGET_EVERY_S = 86_400
REFUSED = frozenset({"SplitShard", "MergeShards", "UpdateShardCount", "UpdateStreamMode"})


class KinesisStore:
    """Storage of streams and records; written after each request that creates some."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._saved: dict[tuple[str, str, str], int] = {}  # newest sequence number, by shard
        self._forgotten_at = 0.0

    def install(self) -> None:
        """Load the stored streams and records."""
        # moto would keep these metrics forever, and nothing reads them.
        KinesisBackend._send_stream_metrics = _no_metrics  # type: ignore[method-assign]
        self._forget_old()
        db = self.index.connection
        for region, name, shards in db.execute("select region, name, shards from kinesis_stream"):
            stream = kinesis_backends[DEFAULT_ACCOUNT_ID][region].create_stream(name, shards)
            for shard in stream.shards.values():
                self._load(region, stream, shard)

    def commit(self, region: str, action: str) -> None:
        """Store new streams and records of the region, unless the action only reads."""
        if action.startswith(("Get", "List", "Describe")):
            return
        streams = kinesis_backends[DEFAULT_ACCOUNT_ID][region].streams
        with self.index.transaction() as db:
            kept = db.execute("select name from kinesis_stream where region = ?", (region,))
            for (name,) in kept.fetchall():
                if name not in streams:
                    self._forget_stream(region, name)
            for stream in streams.values():
                db.execute(
                    "insert or ignore into kinesis_stream values (?, ?, ?)",
                    (region, stream.stream_name, len(stream.shards)),
                )
                for shard in stream.shards.values():
                    self._save(region, stream, shard)
            if time.time() - self._forgotten_at > _FORGET_EVERY_S:
                self._forget_old()

    def _save(self, region: str, stream: Stream, shard: Shard) -> None:
        place = (region, stream.stream_name, shard.shard_id)
        fresh = [*_newer(shard, self._saved.get(place, 0))]
        if fresh:
            self.index.connection.executemany(
                "insert into kinesis_record values (?, ?, ?, ?, ?, ?, ?)",
                [
                    (*place, each.sequence_number, each.partition_key, each.data, each.created_at)
                    for each in fresh
                ],
            )
            self._saved[place] = fresh[0].sequence_number

    def _load(self, region: str, stream: Stream, shard: Shard) -> None:
        place = (region, stream.stream_name, shard.shard_id)
        kept = self.index.connection.execute(
            "select sequence, key, data, created from kinesis_record"
            " where region = ? and stream = ? and shard = ? order by sequence",
            place,
        )
        for sequence, key, data, created in kept:
            record = shard.records[sequence] = Record(key, data, sequence, "")
            record.created_at = created
            moment = datetime.fromtimestamp(created, UTC)
            record.created_at_datetime = moment.replace(tzinfo=None)  # as moto has it
            self._saved[place] = sequence

    def _forget_stream(self, region: str, name: str) -> None:
        db = self.index.connection
        db.execute("delete from kinesis_stream where region = ? and name = ?", (region, name))
        db.execute("delete from kinesis_record where region = ? and stream = ?", (region, name))
        for place in [place for place in self._saved if place[:2] == (region, name)]:
            del self._saved[place]

    def _forget_old(self) -> None:
        """Delete expired records, except the last of each shard: moto counts on from it."""
        self._forgotten_at = time.time()
        oldest = self._forgotten_at - RETENTION_S
        self.index.connection.execute(
            "delete from kinesis_record where created < ? and exists (select * from kinesis_record"
            " later where later.region = kinesis_record.region"
            " and later.stream = kinesis_record.stream and later.shard = kinesis_record.shard"
            " and later.sequence > kinesis_record.sequence)",
            (oldest,),
        )
        for backend in kinesis_backends[DEFAULT_ACCOUNT_ID].values():
            for stream in backend.streams.values():
                for shard in stream.shards.values():
                    _drop_old(shard, oldest)


def _drop_old(shard: Shard, oldest: float) -> None:
    """Drop the records that were created before, except the last one."""
    for sequence in [*shard.records][:-1]:
        if shard.records[sequence].created_at < oldest:
            del shard.records[sequence]


def _newer(shard: Shard, than: int) -> Iterator[Record]:
    """Yield the records after the given sequence number, newest first."""
    for sequence in reversed(shard.records):
        if sequence <= than:
            return
        yield shard.records[sequence]


def _no_metrics(*_: Any, **__: Any) -> None:
    """Replace moto's method; do nothing."""
