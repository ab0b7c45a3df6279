"""The connector keeper, with answers of MSK Connect by botocore's own model of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from cdclake import metrics
from tests.load_function import load
from tests.unit.deployed.published_metrics import published

NAME = "shop-source"
ARN = f"arn:aws:kafkaconnect:eu-west-1:111122223333:connector/{NAME}/0a1b"
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SETTINGS, SIZE = "UPDATE_CONNECTOR_CONFIGURATION", "UPDATE_WORKER_SETTING"
REFUSED = [(SETTINGS, "UPDATE_FAILED", 3)]


class Clock(datetime):
    """Time of the calls."""

    @classmethod
    def now(cls, tz: Any = None) -> Clock:
        return cls.fromtimestamp(NOW.timestamp(), tz)


class Connect:
    """MSK Connect with one connector, which answers in the order of the calls."""

    def __init__(self, keeper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keeper = keeper
        monkeypatch.setattr(keeper, "datetime", Clock)
        client = boto3.client("kafkaconnect")
        self.stub = Stubber(client)
        self.stub.activate()
        monkeypatch.setattr(keeper, "kafkaconnect", lambda: client)

    def answers(
        self,
        state: str,
        *restarted: datetime,
        restarts: bool | str = False,
        updates: Any = (),
        minutes: int = 0,
    ) -> None:
        """Answer with this state and these earlier restarts; `restarts`: one is expected.

        As a text it is the code of MSK Connect's refusal. `updates` are the type, state and
        minutes of age of each update; a restart lasts `minutes`. Each page has one operation.
        """
        other = {"connectorName": f"{NAME}-2", "connectorArn": "x", "connectorState": "FAILED"}
        found = {"connectorName": NAME, "connectorArn": ARN, "connectorState": state}
        self.lists(NAME, other, found)
        operations = [
            {
                "connectorOperationType": "RESTART_CONNECTOR",
                "creationTime": time,
                "endTime": time + minutes * MINUTE,
            }
            for time in restarted
        ]
        operations += [
            {
                "connectorOperationType": kind,
                "connectorOperationState": ended,
                "creationTime": NOW - age * MINUTE,
            }
            for kind, ended, age in updates
        ]
        self.lists_operations(ARN, *operations)
        if isinstance(restarts, str):
            self.stub.add_client_error("restart_connector", restarts, "not now")
        elif restarts:
            self.stub.add_response("restart_connector", {}, {"connectorArn": ARN})

    def lists(self, name: str, *connectors: dict[str, Any]) -> None:
        """List the connectors whose names begin so, one on each page."""
        self._pages("list_connectors", "connectors", connectors, {"connectorNamePrefix": name})

    def lists_operations(self, arn: str, *operations: dict[str, Any]) -> None:
        """List the connector's operations, one on each page."""
        asked = {"connectorArn": arn, "maxResults": 100}
        self._pages("list_connector_operations", "connectorOperations", operations, asked)

    def _pages(self, operation: str, key: str, found: Any, asked: dict[str, Any]) -> None:
        pages = [[each] for each in found] or [[]]
        for number, page in enumerate(pages):
            answer: dict[str, Any] = {key: page}
            if number < len(pages) - 1:
                answer["nextToken"] = f"page {number + 1}"
            after = {"nextToken": f"page {number}"} if number else {}
            self.stub.add_response(operation, answer, {**asked, **after})

    def keep(self) -> str:
        """Call the keeper, check that it has asked for everything, and return what it did."""
        did: str = self.keeper.handler({}, None)["did"]
        self.stub.assert_no_pending_responses()
        return did


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    monkeypatch.setenv("NAME", NAME)
    monkeypatch.setenv("SINKS", "")
    monkeypatch.setenv("DIMENSION", "shop")
    yield Connect(load("connector_keeper"), monkeypatch)


def task_errors(value: float) -> None:
    """Have CloudWatch say that so many tasks have failed, a minute ago and long ago otherwise."""
    boto3.client("cloudwatch").put_metric_data(
        Namespace="AWS/KafkaConnect",
        MetricData=[
            {
                "MetricName": "ErroredTaskCount",
                "Dimensions": [{"Name": "ConnectorName", "Value": NAME}],
                "Timestamp": NOW - minutes * MINUTE,
                "Value": number,
            }
            for minutes, number in ((1, value), (5, 1 - value))
        ],
    )


def figures() -> dict[str, float]:
    """The keeper's metrics."""
    watched = (metrics.CONNECTOR_RESTARTS, metrics.CONNECTOR_UPDATE_REFUSED)
    return published(*(metric.name for metric in watched), deployment="shop")


def test_one_that_runs_is_left_alone(connect):
    task_errors(0)
    connect.answers("RUNNING")
    assert connect.keep() == "nothing: it runs, or it changes"


@pytest.mark.parametrize("restarted", [(), (NOW - 130 * MINUTE,)])
def test_a_failed_connector_is_not_restarted(connect, restarted):
    connect.answers("FAILED", *restarted, updates=REFUSED)
    assert connect.keep() == "failed: replace it"
    assert figures() == {"ConnectorRestarts": len(restarted), "ConnectorUpdateRefused": 1}


def test_a_failed_task_of_a_running_connector_is_restarted(connect):
    task_errors(1)
    connect.answers("RUNNING", restarts=True)
    assert connect.keep() == "restarted"


@pytest.mark.parametrize("code", ["BadRequestException", "ConflictException"])
def test_a_refused_restart_is_reported(connect, code):
    task_errors(1)
    connect.answers("RUNNING", restarts=code, updates=REFUSED)
    assert connect.keep().startswith(f"not restarted: An error occurred ({code})")
    assert figures() == {"ConnectorRestarts": 0, "ConnectorUpdateRefused": 1}


def test_an_error_of_a_restart_does_not_lose_the_metrics(connect):
    task_errors(1)
    connect.answers("RUNNING", restarts="ForbiddenException", updates=REFUSED)
    with pytest.raises(ClientError, match="ForbiddenException"):
        connect.keep()
    assert figures() == {"ConnectorRestarts": 0, "ConnectorUpdateRefused": 1}


def test_the_pauses_grow_to_an_hour(connect):
    task_errors(1)
    first, second = NOW - 130 * MINUTE, NOW - 2 * MINUTE
    connect.answers("RUNNING", first, second)
    assert connect.keep() == "waits"
    assert figures()["ConnectorRestarts"] == 2
    pauses = [connect.keeper.pause(count, NOW) for count in range(1, 9)]
    assert pauses[0] <= 5 * MINUTE < pauses[-1] <= 60 * MINUTE


def test_a_restart_of_yesterday_does_not_count(connect):
    task_errors(1)
    connect.answers("RUNNING", NOW - timedelta(hours=7), restarts=True)
    assert connect.keep() == "restarted"
    assert figures()["ConnectorRestarts"] == 0


@pytest.mark.parametrize(("minutes", "is_stale"), [(6, True), (4, False), (2, False)])
def test_a_metric_from_before_the_end_of_a_restart_restarts_nothing(connect, minutes, is_stale):
    """The newest datapoint is a minute old, the restart began seven minutes ago."""
    task_errors(1)
    connect.answers("RUNNING", NOW - 7 * MINUTE, minutes=minutes, restarts=not is_stale)
    assert connect.keep() == ("nothing: it runs, or it changes" if is_stale else "restarted")


def test_one_that_changes_is_left_alone(connect):
    connect.answers("RESTARTING", NOW - MINUTE)
    assert connect.keep().startswith("nothing")


@pytest.mark.parametrize(
    ("updates", "is_refused"),
    [
        ([], False),
        ([(SETTINGS, "UPDATE_COMPLETE", 1), (SIZE, "UPDATE_FAILED", 9)], False),
        ([(SETTINGS, "UPDATE_IN_PROGRESS", 1), (SETTINGS, "UPDATE_FAILED", 9)], False),
        ([(SIZE, "UPDATE_COMPLETE", 9), (SETTINGS, "UPDATE_FAILED", 1)], True),
        ([(SIZE, "ROLLBACK_COMPLETE", 1), (SETTINGS, "UPDATE_COMPLETE", 9)], True),
    ],
)
@pytest.mark.parametrize("state", ["RUNNING", "FAILED"])
def test_a_refused_update_is_noticed(connect, updates, is_refused, state):
    task_errors(0)
    connect.answers(state, updates=updates)
    connect.keep()
    assert figures()["ConnectorUpdateRefused"] == is_refused


def test_without_a_connector_nothing_is_done(connect):
    connect.lists(NAME)
    assert connect.keep() == "nothing: there is no connector"
    assert figures() == {"ConnectorRestarts": 0, "ConnectorUpdateRefused": 0}


@pytest.mark.parametrize("failing", ["list_connectors", "PutMetricData"])
def test_an_error_of_a_sink_or_of_metrics_does_not_prevent_a_restart(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    task_errors(1)
    connect.answers("RUNNING")
    if failing == "list_connectors":
        monkeypatch.setenv("SINKS", "shop-lake")
        connect.stub.add_client_error(failing, "ForbiddenException", "denied")
    else:
        monkeypatch.setattr(connect.keeper, "publish", refuse)
    connect.stub.add_response("restart_connector", {}, {"connectorArn": ARN})
    with pytest.raises(ClientError, match="ForbiddenException"):
        connect.keep()
    connect.stub.assert_no_pending_responses()


def refuse(*_: Any) -> None:
    raise ClientError(
        {"Error": {"Code": "ForbiddenException", "Message": "denied"}}, "PutMetricData"
    )


@pytest.mark.parametrize("state", ["UPDATE_FAILED", "UPDATE_COMPLETE"])
def test_a_refused_update_of_a_sink_is_published(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setenv("SINKS", "shop-lake,shop-gone")
    connect.answers("RUNNING")
    sink = {"connectorName": "shop-lake", "connectorArn": "sink", "connectorState": "RUNNING"}
    updated = {
        "connectorOperationType": SETTINGS,
        "connectorOperationState": state,
        "creationTime": NOW - MINUTE,
    }
    connect.lists("shop-lake", sink)
    connect.lists("shop-gone")
    connect.lists_operations("sink", updated)
    connect.keep()
    assert figures()[metrics.CONNECTOR_UPDATE_REFUSED.name] == float(state == "UPDATE_FAILED")
