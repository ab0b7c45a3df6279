"""A Kinesis stream, read shard by shard from its checkpoints.

As Firehose, which starts at the latest record, it begins with what is put after its creation.
Source: Firehose's developer guide, writing-with-kinesis-streams.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from cdclake.local.firehose.kpl import user_records
from cdclake.local.firehose.records import Record, shard_id
from cdclake.local.process.home import Home, read_json, write_atomically

_IDLE_PAUSE_S = 0.2
_MAX_RECORDS_PER_CALL = 10_000  # limit of Kinesis
_CREATED_MS = "created_ms"  # key in the file of checkpoints, which begins at that time


def checkpoints_file(home: Home, stream: str) -> Path:
    """Return the path of a Kinesis stream's checkpoints in a lake."""
    return home.data("firehose") / f"{stream}.json"


def begin_now(checkpoints: Path) -> None:
    """Have a new source begin with records that are put from now on; another one goes on."""
    if not checkpoints.exists():
        _write(checkpoints, {_CREATED_MS: time.time_ns() // 1_000_000})


class KinesisSource:
    """Source of the stream's records that were put since its creation.

    A checkpoint is a shard's last record up to and including which all records are delivered. The
    shards are those that existed when reading started.
    """

    def __init__(
        self,
        kinesis: Any,
        stream: str,
        checkpoints: Path,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._kinesis, self._stream = kinesis, stream
        self._file, self._pause = checkpoints, pause
        pages = kinesis.get_paginator("list_shards").paginate(StreamName=stream)
        shards = sorted(shard["ShardId"] for page in pages for shard in page["Shards"])
        self._shards = {_number(shard): shard for shard in shards}
        self._checkpoints: dict[str, Any] = read_json(checkpoints)
        self._read_until = dict(self._checkpoints)
        self._created_ms = int(self._checkpoints.get(_CREATED_MS, 0))
        self._open: dict[int, list[int]] = {number: [] for number in self._shards}  # not delivered

    def read(self, most: int) -> Sequence[Record]:
        """Return the next records of all shards, or none after a fraction of a second."""
        found = [
            record
            for number, shard in self._shards.items()
            for record in self._read_shard(number, shard, most // len(self._shards))
        ]
        if not found:
            self._pause(_IDLE_PAUSE_S)
        return found

    def _read_shard(self, number: int, shard: str, most: int) -> Sequence[Record]:
        while raws := self._next_of(shard, most):
            self._read_until[shard] = raws[-1]["SequenceNumber"]
            kept = [raw for raw in raws if _arrived_ms(raw) >= self._created_ms]
            if kept:
                self._open[number] += [int(raw["SequenceNumber"]) for raw in kept]
                return [record for raw in kept for record in _records(number, raw)]
        return []

    def _next_of(self, shard: str, most: int) -> Sequence[Mapping[str, Any]]:
        last = self._read_until.get(shard)
        start = (
            {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": last}
            if last
            else {"ShardIteratorType": "TRIM_HORIZON"}
        )
        # Requested for every read: an iterator expires after five minutes.
        iterator = self._kinesis.get_shard_iterator(
            StreamName=self._stream, ShardId=shard, **start
        )["ShardIterator"]
        answer = self._kinesis.get_records(
            ShardIterator=iterator, Limit=min(max(most, 1), _MAX_RECORDS_PER_CALL)
        )
        records: Sequence[Mapping[str, Any]] = answer["Records"]
        return records

    def commit(self, offsets: Mapping[int, int], dropped: int = 0) -> None:
        """Store checkpoints: all records before these offsets, by shard, are delivered."""
        del dropped  # Kinesis does not count the records either
        for number, end in offsets.items():
            done = [offset for offset in self._open[number] if offset < end]
            if done:
                self._checkpoints[shard_id(number)] = str(done[-1])
                del self._open[number][: len(done)]
        _write(self._file, self._checkpoints)


def _write(file: Path, checkpoints: Mapping[str, Any]) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(file, json.dumps(checkpoints))


def _arrived_ms(raw: Mapping[str, Any]) -> int:
    arrived: datetime = raw["ApproximateArrivalTimestamp"]
    return round(arrived.timestamp() * 1000)


def _number(shard: str) -> int:
    return int(shard.rpartition("-")[2])


def _records(number: int, raw: Mapping[str, Any]) -> list[Record]:
    """Return the producers' records in a record of Kinesis, which the KPL may have aggregated."""
    found = user_records(raw["Data"], raw["PartitionKey"])
    is_one = [each.data for each in found] == [raw["Data"]]
    return [
        Record(
            partition=number,
            offset=int(raw["SequenceNumber"]),
            arrived_ms=_arrived_ms(raw),
            value=each.data,
            key=each.key,
            part=None if is_one else part,
        )
        for part, each in enumerate(found)
    ]
