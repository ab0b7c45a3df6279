"""Slices of a batch: ranges of offsets with a bounded number of bytes, each processed as a batch.

Spark bounds a batch by its number of offsets only. With rows of 200 kB the batches that suit small
rows would need 40 GB. Reading a slice is idempotent, as reading a batch is: a changelog's stamp has
the offsets that it covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdclake.jobs.jvm.java import java_with
from cdclake.jobs.stream.kafka_range import (
    MAX_POLL_RECORDS,
    POLL_RECORDS_OPTION,
    TopicRanges,
    read_ranges,
)
from cdclake.jobs.stream.table_batch import Ranges
from cdclake.plan import Plan

# Records are in memory several times: as read, as text, decoded, and in two tables' writers.
_HEAP_SHARE = 8
# A consumer holds the records of its last poll, and asks the broker twice for offsets in each poll.
_POLL_BYTES = 4 * 1024 * 1024
_RECORD_BYTES = "coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)"
SIZE = f"sum({_RECORD_BYTES})"  # bytes of the records of a group


class Piece(NamedTuple):
    """Consecutive records of a partition."""

    topic: str
    partition: int
    first: int
    following: int
    size: int


class BatchSlices:
    """Division of batches that are too large; remembers whether the next one probably is.

    To measure a batch means to read it once more from Kafka. That is done for the first batch of a
    run, which may be a backlog, and after a large one.
    """

    def __init__(self, brokers: dict[str, str]) -> None:
        self._brokers = brokers
        self.is_large_expected = True

    def most_bytes(self, spark: SparkSession) -> int:
        """Return how many bytes of records one slice may have."""
        heap = java_with(spark, "java.lang.Runtime").Runtime.getRuntime().maxMemory()
        return int(heap) // _HEAP_SHARE

    def of(self, records: DataFrame, plan: Plan) -> Iterator[DataFrame]:
        """Yield the batch as it is, or read it again slice by slice if it is too large."""
        spark = records.sparkSession
        most = self.most_bytes(spark)
        pieces = measured_pieces(records, most)
        if self.fits(sum(piece.size for piece in pieces), spark):
            yield records
            return
        options = self._brokers | poll_bound(pieces)
        for ranges in combined(_own_topics_last(pieces, plan), most):
            yield read_ranges(spark, options, ranges)

    def of_gap(self, records: DataFrame, topic: str, gap: Ranges) -> list[tuple[DataFrame, Ranges]]:
        """Return what a table has missed, with its ranges, in slices if it is too large."""
        most = self.most_bytes(records.sparkSession)
        pieces = measured_pieces(records, most)
        if sum(piece.size for piece in pieces) <= most:
            return [(records, gap)]
        spark = records.sparkSession
        options = self._brokers | poll_bound(pieces)
        slices = combined(pieces, most)
        return [(read_ranges(spark, options, part), part[topic]) for part in slices]

    def fits(self, size: int, spark: SparkSession) -> bool:
        """Check whether a batch may be processed whole; its size decides about the next one."""
        most = self.most_bytes(spark)
        self.is_large_expected = size > most // 4
        return size <= most


def measured_pieces(records: DataFrame, most: int) -> list[Piece]:
    """Divide the records of each partition into pieces of about `most` bytes.

    A piece exceeds `most` by less than its largest record. Nothing is cached.
    """
    read_so_far = "sum(size) OVER (PARTITION BY topic, partition ORDER BY offset)"
    pieces = (
        records.selectExpr("topic", "partition", "offset", f"{_RECORD_BYTES} AS size")
        .selectExpr("*", f"floor(({read_so_far} - 1) / {most}) AS piece")
        .groupBy("topic", "partition", "piece")
    )
    bounds = ("min(offset) AS first", "max(offset) + 1 AS following", "sum(size) AS size")
    rows = pieces.agg(*(F.expr(bound) for bound in bounds)).collect()
    return sorted(Piece(r.topic, r.partition, r.first, r.following, r["size"]) for r in rows)


def poll_bound(pieces: Iterable[Piece]) -> dict[str, str]:
    """Return the Kafka option that bounds a poll's bytes, by the piece with the largest records."""
    fitting = (_POLL_BYTES * (p.following - p.first) // max(p.size, 1) for p in pieces)
    records = max(1, min([MAX_POLL_RECORDS, *fitting]))
    return {POLL_RECORDS_OPTION: str(records)}


def combined(pieces: Iterable[Piece], most: int) -> list[TopicRanges]:
    """Combine consecutive pieces into slices of at most `most` bytes, or of one piece."""
    slices: list[TopicRanges] = []
    room = -1
    for piece in pieces:
        if piece.size > room:
            slices.append({})
            room = most
        room -= piece.size
        ranges = slices[-1].setdefault(piece.topic, {})
        first, _ = ranges.get(piece.partition, (piece.first, 0))
        ranges[piece.partition] = (first, piece.following)
    return slices


def _own_topics_last(pieces: Sequence[Piece], plan: Plan) -> list[Piece]:
    """Put heartbeats last: one proves that all events before it have been processed."""
    own = set(plan.own_topics.values())
    return sorted(pieces, key=lambda piece: (piece.topic in own, piece))
