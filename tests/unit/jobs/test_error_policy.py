"""Each kind of error leads to its reaction: retry the commit, stop the table, fail the stream."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

from cdclake.errors import CommitConflict, Fenced, InputError, TableError
from cdclake.jobs.iceberg import commit_retry
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict
from cdclake.jobs.iceberg.error_policy import (
    Action,
    Kind,
    cause_for,
    cause_of,
    hold_reason,
    passing_cause,
    policy,
    stop_reason,
)

ICEBERG = "org.apache.iceberg.exceptions."


def java_class(names: list[str]) -> Any:
    """A class and its parents, as `child < parent`."""
    parent = java_class(names[1:]) if names[1:] else None
    return SimpleNamespace(getName=lambda: names[0], getSuperclass=lambda: parent)


def java_error(*chain: tuple[str, str | None]) -> Py4JJavaError:
    thrown: Any = None
    for name, message in reversed(chain):
        thrown = SimpleNamespace(
            _target_id="o1",
            getClass=lambda name=name: java_class(name.split(" < ")),
            getMessage=lambda message=message: message,
            getCause=lambda cause=thrown: cause,
        )
    return Py4JJavaError("call failed", thrown)


def test_every_kind_has_a_policy():
    assert {kind for kind in Kind if policy(kind).action is Action.RETRY} == {
        Kind.COMMIT_LOST,
        Kind.COMMIT_REFUSED,
        Kind.COMMIT_UNKNOWN,
    }
    assert {kind for kind in Kind if policy(kind).action is Action.FAIL_STREAM} == {
        Kind.FENCED,
        Kind.JVM_FAILED,
        Kind.OTHER,
    }
    assert {kind for kind in Kind if policy(kind).action is Action.HOLD_TABLE} == {
        Kind.UNAVAILABLE,
        Kind.FILE_MISSING,
        Kind.TABLE_MISSING,
        Kind.CLOCK_BEHIND,
        Kind.UNEXPECTED,
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("CommitFailedException", Kind.COMMIT_LOST),
        ("ValidationException", Kind.COMMIT_REFUSED),
        ("CommitStateUnknownException", Kind.COMMIT_UNKNOWN),
    ],
)
def test_lost_commit_is_retried_and_stops_no_table(name: str, kind: Kind):
    error = java_error(("org.apache.spark.SparkException", "outer"), (ICEBERG + name, "a\nb"))
    cause = cause_for(error, Action.RETRY)
    assert cause is not None and (cause.kind, cause.reason) == (kind, "a")
    assert cause_of(error, kind) == cause
    assert stop_reason("orders", error) is None


def test_merge_that_another_commit_overtook_in_its_planning_is_retried():
    """The message is that of Iceberg 1.10."""
    message = (
        "Runtime file filtering is not possible: the table has been concurrently modified."
        " Row-level operation scan snapshot ID: 1, current table snapshot ID: 2."
    )
    cause = cause_for(java_error(("java.lang.IllegalStateException", message)), Action.RETRY)
    assert cause is not None and cause.kind is Kind.COMMIT_REFUSED
    other = java_error(("java.lang.IllegalStateException", "closed"))
    assert cause_for(other, Action.RETRY) is None


@pytest.mark.parametrize("name", ["NotFoundException", "NoSuchTableException"])
def test_missing_file_holds_its_table_back_with_a_remedy(name: str):
    reason = hold_reason("orders", java_error(("x", None), (ICEBERG + name, "s3://b/f.avro")))
    assert reason is not None
    assert "'orders'" in reason and "s3://b/f.avro" in reason and "restore" in reason
    assert cause_for(java_error((ICEBERG + name, "f")), Action.RETRY) is None


@pytest.mark.parametrize(
    "message",
    [
        "[BUG] Expected sorted snapshot log entries.",
        "[BUG] Expected sorted previous metadata log entries.",
        "Invalid update timestamp 1790000000000: before last snapshot log entry at 1790007200000",
    ],
)
def test_commit_before_the_newest_one_holds_its_table_back_and_names_the_clock(message: str):
    """The messages are those of Iceberg 1.10."""
    reason = hold_reason("orders", java_error(("java.lang.IllegalArgumentException", message)))
    assert reason is not None
    assert message in reason and "check the clocks" in reason and "stream's log" not in reason


def test_table_errors_stop_their_table_with_their_own_text():
    assert stop_reason("t", TableError("t", "bad\nmore", "fix it")) == "table 't': bad"
    assert stop_reason("t", CommitConflict("t", "lost")) == "table 't': lost"
    assert stop_reason("t", AnalysisException(message="no column\n+- plan")) == "no column"


@pytest.mark.parametrize(
    "error",
    [
        Fenced("another"),
        InputError("x"),
        RuntimeError("x"),
        java_error(("x", None), ("java.lang.OutOfMemoryError < java.lang.VirtualMachineError", "")),
        java_error(("x", "Job 7 cancelled because SparkContext was shut down")),
    ],
)
def test_other_errors_fail_the_stream(error: Exception):
    assert stop_reason("t", error) is None
    assert hold_reason("t", error) is None
    assert cause_for(error, Action.RETRY) is None


_GLUE = "software.amazon.awssdk.services.glue.model."


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("software.amazon.awssdk.services.s3.model.S3Exception", "(Service: S3, Status Code: 503)"),
        (f"{_GLUE}ThrottlingException < {_GLUE}GlueException", "(Service: Glue, Status Code: 400)"),
        (f"{_GLUE}GlueException", "Rate exceeded (Service: Glue, Status Code: 400)"),
        (
            "software.amazon.awssdk.core.exception.SdkClientException",
            "Unable to execute HTTP request",
        ),
        ("o.a.k.DisconnectException < org.apache.kafka.common.errors.RetriableException", None),
        ("java.util.concurrent.TimeoutException", "Cannot fetch record in 120000 ms"),
        ("java.net.ConnectException < java.net.SocketException", "Connection refused"),
        ("org.apache.spark.SparkException", "Lost task: S3Exception: (Status Code: 500, x)"),
    ],
)
def test_a_service_that_fails_holds_its_table_back(name: str, message: str | None):
    error = java_error(("org.apache.spark.SparkException", "Job aborted"), (name, message))
    reason = hold_reason("t", error)
    assert reason is not None and "does not answer" in reason
    assert passing_cause(error) is not None and stop_reason("t", error) is None


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ClientError({"Error": {"Code": "SlowDown"}}, "GetObject"), True),
        (ClientError({"ResponseMetadata": {"HTTPStatusCode": 500}}, "GetObject"), True),
        (EndpointConnectionError(endpoint_url="http://s3"), True),
        (ClientError({"Error": {"Code": "AccessDenied"}}, "GetObject"), False),
    ],
)
def test_boto_errors_hold_the_table_back_if_they_will_pass(error: Exception, passes: bool):
    assert (hold_reason("t", error) is not None) is passes
    assert (passing_cause(error) is not None) is passes


def test_a_table_that_is_not_found_is_looked_for_again():
    error = AnalysisException(message="[TABLE_OR_VIEW_NOT_FOUND] The table `t` cannot be found")
    reason = hold_reason("t", error)
    assert reason is not None and "does not find the table" in reason
    assert stop_reason("t", error) is None


def test_an_unexpected_java_error_holds_back_its_table_alone():
    error = java_error(("java.lang.NullPointerException", "x"))
    assert "'t'" in (hold_reason("t", error) or "")
    assert passing_cause(error) is None


def test_retry_repeats_lost_work_and_ends_with_a_conflict(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(commit_retry, "pause", lambda tries: None)
    tries = []

    def lose() -> None:
        tries.append(1)
        raise java_error((ICEBERG + "CommitFailedException", "stale"))

    with pytest.raises(CommitConflict, match="stale") as conflict:
        retry_on_conflict("orders", lose)
    assert len(tries) == commit_retry.MAX_TRIES
    assert conflict.value.remedy == policy(Kind.COMMIT_CONFLICT).remedy

    def fail() -> None:
        tries.append(1)
        raise java_error(("java.lang.RuntimeException", "lake is down"))

    tries.clear()
    with pytest.raises(Py4JJavaError):
        retry_on_conflict("orders", fail)
    assert len(tries) == 1
