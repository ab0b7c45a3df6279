"""S3 or Glue throttle one table: the others flow, and it catches up by itself, nothing doubled."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.jobs.control.table_life import Held
from cdclake.jobs.stream import batch as micro_batch
from cdclake.local.aws.aws_server import DurableAws
from cdclake.local.aws.http_server import Answer
from tests.spark.events import RECORD
from tests.spark.fed_stream import Stream
from tests.spark.glue_catalog import glue_session, serving

pytestmark = [pytest.mark.spark, pytest.mark.slow]

THROTTLED = json.dumps({"__type": "ThrottlingException", "message": "Rate exceeded"}).encode()
NOT_FOUND = json.dumps({"__type": "EntityNotFoundException", "message": "not found"}).encode()
FAILURES: dict[str, Answer] = {
    "s3": (503, {"Content-Type": "application/xml"}, b"<Error><Code>SlowDown</Code></Error>"),
    "glue": (400, {"Content-Type": "application/x-amz-json-1.1"}, THROTTLED),
    "not found": (400, {"Content-Type": "application/x-amz-json-1.1"}, NOT_FOUND),
}


class FailingAws:
    """S3 and Glue of which one fails for one table, as long as a test wants."""

    def __init__(self, folder: Path) -> None:
        self._aws = DurableAws(folder)
        self.table, self.failure = "", ""

    def __call__(self, environ: dict[str, Any], body: bytes) -> Answer:
        is_glue = "HTTP_X_AMZ_TARGET" in environ
        concerned = f'"{self.table}' in body.decode(errors="replace") if is_glue else (
            f"/{self.table}" in str(environ.get("PATH_INFO", ""))
        )  # fmt: skip
        if self.table and concerned and is_glue == (self.failure != "s3"):
            return FAILURES[self.failure]
        return self._aws(environ, body)


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FailingAws, str]]:
    failing = FailingAws(tmp_path_factory.mktemp("aws"))
    with serving(failing) as url:
        yield failing, url


@pytest.fixture
def stream(spark: SparkSession, aws: tuple[FailingAws, str]) -> Stream:
    return Stream(glue_session(spark, aws[1]))


@pytest.mark.parametrize("failure", sorted(FAILURES))
def test_a_throttled_table_waits_alone_and_catches_up_by_itself(
    stream: Stream, aws: tuple[FailingAws, str], failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = stream.one, stream.two
    stream.run(*stream.records((one, one.event("c", 10, 10, v="a")), (two, two.event("c", 1, 1))))
    aws[0].table, aws[0].failure = one.table.name, failure
    missed = stream.records((one, one.event("u", 20, 20, v="b")), (two, two.event("c", 2, 2, id=2)))
    stream.run(*missed)
    place = stream.progress().table(one.table.name)
    assert (place.is_streaming, place.failures, place.offsets) == (False, 1, {0: 1})
    assert isinstance(place.life, Held) and 0 < place.life.retry_at - time.time() <= 10
    assert place.last_error is not None and "the next try is at" in place.last_error
    problem = "does not find the table" if failure == "not found" else "does not answer"
    assert problem in place.last_error
    assert len(two.log()) == 2

    kept = stream.process._progress.tables[one.table.name]
    kept.life = replace(place.life, retry_at=1.0)
    records = [record for record in missed if record[0] == one.table.topic]
    frame = stream.spark.createDataFrame(records, RECORD)
    monkeypatch.setattr(micro_batch, "read_gap", lambda *_: (frame, {0: (1, 2)}))
    stream.run()
    assert stream.progress().table(one.table.name).failures == 2

    aws[0].table = ""
    stream.start()  # a slow machine's next batch may be late, and leave the states alone
    held = stream.process._progress.tables[one.table.name]
    assert isinstance(held.life, Held)
    held.life = replace(held.life, retry_at=1.0)
    stream.run()
    place = stream.progress().table(one.table.name)
    assert (place.is_streaming, place.failures, place.last_error) == (True, 0, None)
    assert ([row["cdc_lsn"] for row in one.log()], one.state()) == ([10, 20], {1: ("b", None)})
