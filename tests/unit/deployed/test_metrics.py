"""What the jobs tell CloudWatch, against moto: names, dimensions, figures; and no trouble by it."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError, NoRegionError
from botocore.parsers import ResponseParserError

from cdclake import metrics
from cdclake.control_objects import PAUSE, RefusedTotals
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.table_life import Stopped
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.stream.gauges import StreamGauges
from cdclake.jobs.stream.streaming_query import publish_until_end, run_stream
from cdclake.jobs.table_jobs.table_reports import TableReport, failed_tables, worst_sizes
from tests.spark.events import MemoryStore, plan_of

TOTALS = RefusedTotals(quarantined=3, withheld=5)


def told() -> dict[str, tuple[float, str, dict[str, str]]]:
    """By metric what CloudWatch knows: the newest value, its unit, and its dimensions."""
    client, found = boto3.client("cloudwatch"), {}
    for metric in client.list_metrics(Namespace=metrics.NAMESPACE)["Metrics"]:
        points = client.get_metric_statistics(
            Namespace=metrics.NAMESPACE,
            MetricName=metric["MetricName"],
            Dimensions=metric["Dimensions"],
            StartTime=datetime.now(UTC) - timedelta(hours=1),
            EndTime=datetime.now(UTC) + timedelta(hours=1),
            Period=60,
            Statistics=["Sum", "Maximum"],
        )["Datapoints"]
        dimensions = {each["Name"]: each["Value"] for each in metric["Dimensions"]}
        found[metric["MetricName"]] = (points[-1]["Sum"], points[-1]["Unit"], dimensions)
    return found


@pytest.fixture
def control() -> MemoryStore:
    return MemoryStore()


def stands(control: MemoryStore, **what: Any) -> None:
    """Have the stream's progress say so, as after a batch."""
    stored = control.read("progress.json")
    Progress(**what, etag=stored.etag if stored else None).save(control)  # type: ignore[arg-type]


def test_a_stream_tells_how_it_stands(control):
    stands(control)
    stream = StreamGauges(control, Metrics("shop"))
    tables = {
        "a": TableProgress(state_behind_since=time.time() - 40),
        "b": TableProgress(life=Stopped(reason="why")),
    }
    beat = int((time.time() - 90) * 1e6)
    stands(
        control, seconds=2.5, events=70, heartbeat_committed_us=beat, tables=tables, refused=TOTALS
    )
    stream.publish({"sources": [{"metrics": {"maxOffsetsBehindLatest": "40"}}]})
    found = told()
    figures = {name: value for name, (value, _, _) in found.items()}
    assert figures.pop("Freshness") == pytest.approx(90, abs=5)
    assert figures.pop("BatchAge") == pytest.approx(0, abs=5)
    assert figures.pop("StateAge") == pytest.approx(40, abs=5)
    assert figures == {
        "BatchSeconds": 2.5, "BatchEvents": 70, "StoppedTables": 1, "Quarantined": 3, "Withheld": 5,
        "Lag": 40,
    }  # fmt: skip
    assert all(dimensions == {"Deployment": "shop"} for _, _, dimensions in found.values())
    assert (found["Freshness"][1], found["Lag"][1]) == ("Seconds", "Count")


class CountingMetrics(Metrics):
    """Metrics of refused events that CloudWatch accepts, or not while it fails."""

    def __init__(self) -> None:
        super().__init__("shop")
        self.accepted: list[tuple[float, float]] = []
        self.is_failing = False

    def _put(self, values: Any) -> None:
        if self.is_failing:
            raise ClientError({"Error": {"Code": "InternalFailure"}}, "PutMetricData")
        self.accepted.append((values[metrics.QUARANTINED], values[metrics.WITHHELD]))


def refuses(control: MemoryStore, quarantined: int, withheld: int = 0) -> None:
    """Store these totals, as a batch does."""
    stands(control, refused=RefusedTotals(quarantined=quarantined, withheld=withheld))


def test_gauges_publish_refused_events_once(control):
    published = CountingMetrics()
    stream = StreamGauges(control, published)
    for total in (7, 9, 9, 2):  # the last one after the progress was lost
        refuses(control, total)
        stream.publish(None)
    assert published.accepted == [(7, 0), (2, 0), (0, 0), (2, 0)]


def test_gauges_publish_what_a_failed_call_did_not(control):
    published = CountingMetrics()
    stream = StreamGauges(control, published)
    refuses(control, 3, 1)
    published.is_failing = True
    stream.publish(None)
    refuses(control, 4, 2)
    published.is_failing = False
    stream.publish(None)
    stream.publish(None)
    assert published.accepted == [(4, 2), (0, 0)]


def test_gauges_of_the_next_run_publish_what_the_last_did_not(control):
    """A process may be killed between a batch and the next publication."""
    published = CountingMetrics()
    for total in (3, 5, 5):
        stream = StreamGauges(control, published)
        stream.publish(None)
        refuses(control, total)
    assert published.accepted == [(0, 0), (3, 0), (2, 0)]


def test_gauges_note_what_is_published_once_s3_answers_again(control, monkeypatch):
    published = CountingMetrics()
    stream = StreamGauges(control, published)
    refuses(control, 3)
    with monkeypatch.context() as patched:
        patched.setattr(control, "write", Mock(side_effect=NoRegionError()))
        stream.publish(None)
    stream.publish(None)
    StreamGauges(control, published).publish(None)
    assert published.accepted == [(3, 0), (0, 0), (0, 0)]


def test_gauges_write_nothing_without_refused_events(control):
    refuses(control, 0)
    StreamGauges(control, CountingMetrics()).publish(None)
    assert control.stored.keys() == {"progress.json"}


def test_a_query_that_fails_publishes_its_last_refused_events(control):
    def fail(query: Any, meanwhile: Any) -> None:
        meanwhile()
        refuses(control, 3)
        raise RuntimeError("the query failed")

    published, handover = CountingMetrics(), Mock(await_end=fail)
    with pytest.raises(RuntimeError, match="the query failed"):
        publish_until_end(Mock(lastProgress=None), handover, StreamGauges(control, published))
    assert published.accepted == [(0, 0), (3, 0)]
    StreamGauges(control, published).publish(None)
    assert published.accepted[2:] == [(0, 0)]


def test_it_is_told_once_a_minute(control, monkeypatch):
    calls: list[Any] = []
    monkeypatch.setattr(StreamGauges, "publish", lambda self, progress, **_: calls.append(progress))
    stream = StreamGauges(control, Metrics("shop"))
    for _ in range(3):
        stream.publish_if_due(None)
    assert len(calls) == 1
    monkeypatch.setattr(time, "time", lambda: 1e12)
    stream.publish_if_due(None)
    assert len(calls) == 2


@pytest.mark.parametrize("name", ["Freshness", "StoppedTables"])
def test_gauges_of_a_scheduled_run_publish_its_alarms_at_its_end(control, name):
    """Until its first batch ends, a run has the figures of the previous one."""
    published: list[set[str]] = []

    class Noting(Metrics):
        def _put(self, values: Any) -> None:
            published.append({metric.name for metric in values})

    stands(control, heartbeat_committed_us=int((time.time() - 3600) * 1e6))
    for is_scheduled in (False, True):
        stream = StreamGauges(control, Noting("shop"), is_scheduled=is_scheduled)
        stream.publish_if_due(None)
        stream.publish(None)
    assert [name in names for names in published] == [True, True, False, True]
    assert all("BatchSeconds" in names for names in published)


def test_gauges_count_a_held_table_at_the_end_of_a_scheduled_run(control):
    """Its next try is the next run, which may be days away: a stream that is always on retries."""
    held = TableProgress()
    held.hold("a data file is missing", time.time())
    stands(control, tables={"a": held, "b": TableProgress()})
    counted = []
    for is_scheduled in (False, True):
        StreamGauges(control, Metrics("shop"), is_scheduled=is_scheduled).publish(None)
        counted.append(told()["StoppedTables"][0])
    assert counted == [0, 1]


def test_a_paused_run_publishes_the_lakes_age():
    """A forgotten pause ends each scheduled run as a success; events expire after seven days."""
    boto3.client("s3").create_bucket(
        Bucket="state", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
    )
    control = ObjectStore("s3://state/control")
    plan = replace(plan_of(), mode="scheduled")
    boto3.client("s3").put_object(Bucket="state", Key="plan.json", Body=plan.to_json().encode())
    held = TableProgress()
    held.hold("a data file is missing", time.time())
    beat = int((time.time() - 7200) * 1e6)
    Progress(heartbeat_committed_us=beat, tables={"orders": held}).save(control)
    control.write(PAUSE, {"since": "2026-11-28T10:00:00+00:00"})
    paths = {"control": "s3://state/control", "plan": "s3://state/plan.json"}
    run_stream({**paths, "metrics": "shop"}, Mock())
    found = told()
    assert found["Freshness"][0] == pytest.approx(7200, abs=60)
    assert found["StoppedTables"][0] == 1


def test_without_a_first_heartbeat_nothing_is_said_of_freshness_and_lag(control):
    StreamGauges(control, Metrics("shop")).publish(None)
    assert not {"Freshness", "Lag", "BatchAge"} & told().keys()


def test_gauges_have_no_age_of_states_that_the_stream_does_not_apply(control, capsys):
    stands(control, tables={"orders": TableProgress()})
    StreamGauges(control, Metrics("shop"), "shop").publish(None)
    assert "StateAge" not in told()
    assert not {"TableStateAge"} & json.loads(capsys.readouterr().out).keys()


def test_a_lake_that_is_not_deployed_publishes_nothing(control, monkeypatch, caplog):
    client = Mock()
    monkeypatch.setattr(boto3, "client", client)
    StreamGauges(control, Metrics(None)).publish(None)
    assert client.mock_calls == []
    assert caplog.messages == []


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "AccessDenied"}}, "PutMetricData"),
        NoRegionError(),
        ResponseParserError("<html>"),
    ],
)
def test_what_cannot_be_told_is_logged_once_and_hurts_nobody(control, monkeypatch, caplog, error):
    def failing(*_: Any, **__: Any) -> Any:
        raise error

    stream = StreamGauges(control, Metrics("shop"))
    real = boto3.client
    with caplog.at_level(logging.WARNING):
        monkeypatch.setattr(boto3, "client", failing)
        stream.publish(None)
        stream.publish(None)
        assert [record.message.split(":")[0] for record in caplog.records] == [
            "metrics could not be published"
        ]
        monkeypatch.setattr(boto3, "client", real)
        stream.publish(None)
        monkeypatch.setattr(boto3, "client", failing)
        stream.publish(None)
        assert len(caplog.records) == 2


def report(table: str, **what: Any) -> TableReport:
    sizes = {
        f"{of}_{when}": 0 for of in ("files", "bytes", "snapshots") for when in ("before", "after")
    }
    return TableReport(table=table, seconds=1.0, rows_applied=0, **{**sizes, **what})


def test_a_job_tells_its_failures_and_its_worst_sizes():
    plan = plan_of()
    [table] = plan.tables
    others = replace(table, name="others", maintenance="none")
    plan = replace(plan, tables=(table, others))
    sizes = {"files_after": 30, "bytes_after": 10 * 128 * 1024 * 1024, "snapshots_after": 8}
    reports = [report(table.name, **sizes), report("others", files_after=900, snapshots_after=900)]
    assert worst_sizes(plan, reports) == {metrics.SMALL_FILES: 20, metrics.SNAPSHOTS: 8}
    assert worst_sizes(plan, []) == {metrics.SMALL_FILES: 0, metrics.SNAPSHOTS: 0}
    Metrics("shop", "maintain_tables").publish(
        lambda: failed_tables({"tables": [{"error": None}, {"error": "x"}]})
    )
    dimensions = {"Deployment": "shop", "Job": "maintain_tables"}
    assert told() == {"FailedTables": (1, "Count", dimensions)}
