"""Warnings of queries `--as-of` a commit time that a changelog has not reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from cdclake.cli.output import warning_lines
from cdclake.control_objects import PollProgress, poll_name
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.reached_commits import missing_commits
from cdclake.local.reader import query
from cdclake.plan import Table
from cdclake.polling import Polling
from cdclake.query_answer import Answer
from tests.unit.verify.lakes import make_plan, make_table

TABLE, REACHED_US = make_table(name="orders"), 1_764_000_000_000_000
POLLED = make_table(
    name="rates", delivery="poll", polling=Polling(by="changed_at", every="rate(5 minutes)")
)


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        boto3.client("s3").create_bucket(Bucket="lake")
        yield ObjectStore("s3://lake/control")


def stored(control: ObjectStore, reason: str | None = None) -> None:
    progress = Progress(heartbeat_committed_us=REACHED_US)
    place = progress.table(TABLE.name)
    if reason is not None:
        place.stop(reason)
    progress.save(control)


def messages(control: ObjectStore, table: Table, micros: int) -> list[str]:
    return [each["message"] for each in missing_commits(control, [table], micros)]


def test_a_time_after_the_newest_heartbeat_is_warned_of(control: ObjectStore) -> None:
    stored(control)
    assert messages(control, TABLE, REACHED_US) == []
    [message] = messages(control, TABLE, REACHED_US + 1)
    assert message.startswith("orders: the changelog has the commits until 2025-11-24T16:00:00")


@pytest.mark.parametrize("delivery", ["stream", "firehose"])
def test_an_unknown_progress_is_warned_of(control: ObjectStore, delivery: str) -> None:
    stored(control, reason="too many")
    [message] = messages(control, make_table(name="orders", delivery=delivery), 1)
    assert "it is not known" in message


def test_a_polled_table_has_what_its_last_poll_read(control: ObjectStore) -> None:
    assert "it is not known" in messages(control, POLLED, 1)[0]
    poll = PollProgress(read_at=REACHED_US)
    control.write(poll_name(POLLED.name), poll.to_json())
    assert messages(control, POLLED, REACHED_US) == []
    assert "later ones may be missing" in messages(control, POLLED, REACHED_US + 1)[0]


def test_a_query_of_a_commit_time_has_the_warning(
    control: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stored(control)
    late = {"message": "orders_changes: 'status' was added", "remedy": "leave it out"}
    monkeypatch.setattr(query, "_query", lambda *_, **__: Answer((), []))
    monkeypatch.setattr(query, "late_columns", lambda _, tables, __: (late,) if tables else ())
    reader = Reader(plan=make_plan(TABLE), s3="", glue="", bucket="", spill=tmp_path,
                    control=control)  # fmt: skip
    answer = query.run_query(reader, "SELECT * FROM orders_current", as_of="-1s")
    reached, added = warning_lines(answer.to_json()["warnings"])
    assert reached.startswith("warning: orders: the changelog has the commits until")
    assert added.startswith("warning: orders_changes: 'status' was added")
    assert query.run_query(reader, "SELECT * FROM orders_current").warnings == ()
    assert query.run_query(reader, "SELECT 1", as_of="-1s").warnings == ()
