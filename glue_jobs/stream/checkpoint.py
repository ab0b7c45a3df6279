"""The stream's checkpoint: discarded when Spark could never start from it.

Spark fails at each start if Kafka no longer has the checkpoint's offsets, or if a file of it is
damaged. Without a checkpoint the stream reads everything that Kafka has: the stamps show which
records the changelogs hold, and a table that misses records stops.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from cdclake.jobs.jvm.java import java_with
from cdclake.jobs.stream.topic_check import Topics

log = logging.getLogger("cdclake.stream")

_CLASSES = ("org.apache.hadoop.fs.Path", "org.apache.commons.io.IOUtils")
Offsets = Mapping[str, Mapping[int, int]]  # by topic and partition


class DamagedCheckpoint(Exception):
    """A file of the checkpoint that Spark cannot read."""


class Folder:
    """Files of the checkpoint, on this machine or in S3, read as Spark reads them."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._java = java_with(spark, *_CLASSES)
        self._uri = uri.rstrip("/")
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        self._files = self._path("").getFileSystem(hadoop)

    def numbers(self, folder: str) -> list[int]:
        """Return the numbers of the batches in a folder of the checkpoint, in order."""
        path = self._path(folder)
        if not self._files.exists(path):
            return []
        names = [str(entry.getPath().getName()) for entry in self._files.listStatus(path)]
        return sorted(int(name) for name in names if name.isdecimal())

    def read(self, name: str) -> str | None:
        """Return the file's text; None if there is none."""
        path = self._path(name)
        if not self._files.exists(path):
            return None
        try:
            stream = self._files.open(path)
            try:
                return str(self._java.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()
        except Py4JJavaError as error:
            if "ChecksumException" in error.java_exception.getClass().getName():
                raise DamagedCheckpoint(f"its file {path} fails its checksum") from error
            raise

    def remove(self) -> None:
        """Delete the checkpoint."""
        self._files.delete(self._path(""), True)

    def _path(self, name: str) -> Any:
        return self._java.Path(f"{self._uri}/{name}" if name else self._uri)


def discard_unusable(spark: SparkSession, uri: str, topics: Topics) -> None:
    """Delete a checkpoint that Spark could not start from, and log why."""
    folder = Folder(spark, uri)
    reason = find_problem(folder, topics)
    if reason is None:
        return
    log.error(
        "the checkpoint %s cannot be used: %s. It is discarded: the stream reads from Kafka's first"
        " records again, the stamps show which of them the changelogs hold, and a table that misses"
        " records stops and names its remedy",
        uri,
        reason,
    )
    folder.remove()


def find_problem(folder: Folder, topics: Topics) -> str | None:
    """Return why Spark cannot start from the checkpoint; None if it can, or if there is none."""
    try:
        places = list(_places(folder))
    except DamagedCheckpoint as error:
        return str(error)
    names = sorted({topic for offsets in places for topic in offsets})
    states = topics.states(names) if names else {}
    for offsets in places:
        for topic, partitions in offsets.items():
            if topic not in states:
                return f"the topic {topic} no longer exists"
            state = states[topic]
            for partition, offset in partitions.items():
                first, end = state.first.get(partition, 0), state.end.get(partition, 0)
                if not first <= offset <= end:
                    return (
                        f"it is at offset {offset} of partition {partition} of {topic}, and Kafka"
                        f" has {first}-{end}"
                    )
    return None


def _places(folder: Folder) -> Iterator[Offsets]:
    """Yield the offsets that Spark starts from and, of a batch without a commit, its end."""
    _parse(folder, "metadata", versioned=False)
    planned, done = folder.numbers("offsets"), folder.numbers("commits")
    if done:
        _parse(folder, f"commits/{done[-1]}")
    is_open = bool(planned) and (not done or done[-1] < planned[-1])
    for number in planned[-2:]:
        [*_, offsets] = _parse(folder, f"offsets/{number}")
        if number == planned[-1] or is_open:
            yield _offsets(offsets)
    if planned and is_open and planned[-1] == 0:
        for initial in _parse(folder, "sources/0/0"):
            yield _offsets(initial)


def _parse(folder: Folder, name: str, *, versioned: bool = True) -> list[Any]:
    """Return the JSON lines of a file, [] if there is none; raise DamagedCheckpoint."""
    text = folder.read(name)
    if text is None:
        return []
    version, *lines = text.lstrip("\0").split("\n") if versioned else ("v1", text)
    try:
        if not version.startswith("v") or not lines:
            raise ValueError("incomplete")
        return [json.loads(line) for line in lines if line != "-"]
    except ValueError as error:
        raise DamagedCheckpoint(f"its file {name} is damaged ({error})") from error


def _offsets(by_topic: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {t: {int(p): offset for p, offset in places.items()} for t, places in by_topic.items()}
