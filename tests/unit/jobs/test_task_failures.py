"""Failures of tasks keep the kind that decides what the stream does."""

from __future__ import annotations

from pathlib import Path

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from cdclake.errors import FileMissing, ServiceUnavailable, TaskFailed
from cdclake.jobs.iceberg.error_policy import hold_reason, passing_cause
from cdclake.jobs.iceberg.task_failures import failure_of, failure_text, traceback_of


def raised(error: Exception) -> str:
    """The text of an error that was raised, as a task tells it."""
    try:
        raise error
    except Exception as caught:
        return failure_text(caught)


@pytest.mark.parametrize(
    ("error", "kind", "problem"),
    [
        (
            ClientError({"Error": {"Code": "SlowDown", "Message": "reduce"}}, "PutObject"),
            ServiceUnavailable,
            "does not answer",
        ),
        (EndpointConnectionError(endpoint_url="https://s3"), ServiceUnavailable, "does not answer"),
        (FileNotFoundError(2, "no file", "s3://b/x.parquet"), FileMissing, "s3://b/x.parquet is"),
        (
            ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "PutObject"),
            TaskFailed,
            "its work failed",
        ),
        (ValueError("odd"), TaskFailed, "ValueError: odd"),
    ],
)
def test_a_failure_keeps_its_kind(error: Exception, kind: type[TaskFailed], problem: str) -> None:
    text = raised(error)
    found = failure_of(text)
    assert type(found) is kind
    assert problem in str(hold_reason("orders", found))
    assert (passing_cause(found) is not None) == (kind is ServiceUnavailable)
    assert traceback_of(text).startswith("Traceback") and Path(__file__).name in traceback_of(text)
