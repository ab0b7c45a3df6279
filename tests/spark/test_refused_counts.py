"""Refused events count once, though a process is killed or a table is held in between."""

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from cdclake.errors import ServiceUnavailable
from cdclake.jobs.control.table_life import Held
from cdclake.jobs.stream import batch as micro_batch
from cdclake.jobs.stream import quarantine, table_stream
from cdclake.jobs.stream.state_round import StateRound
from tests.spark.events import RECORD
from tests.spark.fed_stream import Stream

pytestmark = pytest.mark.spark


@pytest.fixture
def stream(spark: SparkSession) -> Stream:
    return Stream(spark)


RUBBISH = (b'{"id": 7}', b"{rubbish")


@pytest.mark.parametrize(
    "killed_at",
    [
        pytest.param("the commit of the quarantine", marks=pytest.mark.slow),
        "the commit of the changelog",
        pytest.param("the update of the states", marks=pytest.mark.slow),
    ],
)
def test_refused_events_count_once_though_a_process_is_killed(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    one, killed = stream.one, Mock(side_effect=MemoryError("killed"))
    target: tuple[Any, str] = {
        "the commit of the quarantine": (quarantine, "fenced"),
        "the commit of the changelog": (table_stream, "commit_files"),
        "the update of the states": (StateRound, "run"),
    }[killed_at]
    records = stream.records((one, one.event("c", 10, 10, v="a")), *[(one, RUBBISH)] * 3)
    with monkeypatch.context() as patched, pytest.raises(MemoryError):
        patched.setattr(*target, killed)
        stream.run(*records)
    for _ in range(2):  # the second time as if Spark had not recorded the batch's offsets
        stream.start()
        stream.run(*records)
        mine = stream.progress().table(one.table.name)
        assert (mine.quarantined, mine.is_streaming, len(one.quarantined())) == (3, False, 3)
        assert "3 events refused" in str(mine.last_error)
        assert stream.progress().refused.quarantined == 3
    assert len(one.log()) == 1


@pytest.mark.parametrize("failing", ["quarantine", "changelog"])
@pytest.mark.slow
def test_refused_events_of_a_held_table_count_once(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    one, error = stream.one, ServiceUnavailable("Glue does not answer", "wait")
    records = stream.records((one, one.event("c", 10, 10, v="a")), (one, RUBBISH), (one, RUBBISH))
    with monkeypatch.context() as patched:
        target = (
            (quarantine, "fenced") if failing == "quarantine" else (table_stream, "commit_files")
        )
        patched.setattr(*target, Mock(side_effect=error))
        stream.run(*records)
    mine = stream.progress().table(one.table.name)
    assert isinstance(mine.life, Held)
    assert mine.quarantined == 2
    more = stream.records((one, RUBBISH))
    frame = stream.spark.createDataFrame([*records, *more], RECORD)
    monkeypatch.setattr(micro_batch, "read_gap", lambda *_: (frame, {0: (0, 4)}))
    kept = stream.process._progress.table(one.table.name)
    kept.life = replace(mine.life, retry_at=1.0)
    stream.run()
    mine = stream.progress().table(one.table.name)
    assert (mine.quarantined, mine.is_streaming, mine.counted) == (3, False, {})
    assert "3 events refused" in str(mine.last_error)
    assert (len(one.log()), len(one.quarantined())) == (1, 3)


def test_refused_events_of_a_resumed_table_count_for_it(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = stream.one
    stream.run(*stream.records(*[(one, RUBBISH)] * 3))
    gap = stream.records((one, RUBBISH), (one, RUBBISH))
    frame = stream.spark.createDataFrame(gap, RECORD)
    monkeypatch.setattr(micro_batch, "read_gap", lambda *_: (frame, {0: (3, 5)}))
    stream.control.write(f"resume/{one.table.name}.json", {})
    stream.run()
    mine = stream.progress().table(one.table.name)
    assert (mine.quarantined, mine.is_streaming) == (2, True)
