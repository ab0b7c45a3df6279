"""Calls of AWS that each Lambda function makes, and the role that must allow them.

The functions' tests fail at a call that is not listed here; a synth test fails at an action that a
role allows and the list lacks.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).resolve().parents[1]
FUNCTIONS = _TESTS.parent / "lambda"
_REDRIVE = _TESTS.parent / "cdclake" / "redrive"  # what the redrives' handlers call

# Of a redrive, which moves objects.
_MOVES = frozenset(
    {"s3:ListObjectsV2", "s3:GetObject", "s3:PutObject", "s3:CopyObject", "s3:DeleteObject"}
)
_READS_ERASURES = frozenset({"s3:ListObjectsV2", "s3:GetObject", "secretsmanager:GetSecretValue"})
# By function: what it calls.
CALLS: Mapping[str, frozenset[str]] = {
    "stream_keeper": frozenset(
        {"glue:BatchStopJobRun", "glue:GetJobRuns", "glue:StartJobRun"}
        | {"s3:GetObject", "s3:HeadObject", "s3:PutObject", "cloudwatch:PutMetricData"}
    ),
    "connector_keeper": frozenset(
        {"cloudwatch:GetMetricStatistics", "cloudwatch:PutMetricData"}
        | {"kafkaconnect:ListConnectors", "kafkaconnect:ListConnectorOperations"}
        | {"kafkaconnect:RestartConnector"}
    ),
    "custom_resources": frozenset(
        {"s3:CopyObject", "kafka:GetBootstrapBrokers", "ec2:DescribeSubnets"}
        | {"glue:GetTable", "glue:StartJobRun"}
    ),
    "firehose_changes": _READS_ERASURES,
    "firehose_redrive": (
        _MOVES
        | _READS_ERASURES
        | {"s3:DeleteObjectVersion", "firehose:PutRecordBatch", "glue:GetTables"}
    ),
    "firehose_redrive_puts": _MOVES | {"firehose:PutRecordBatch", "kinesis:PutRecords"},
    "prepare_source": frozenset(
        {"s3:GetObject", "s3:PutObject", "secretsmanager:GetSecretValue"}
        | {"cloudwatch:PutMetricData"}
    ),
}


MADE: set[tuple[str, str]] = set()  # in this process: function and call


class UnlistedCall(Exception):
    """Call of a function that `CALLS` lacks."""


def checked(client: Any) -> Any:
    """Return the client, whose calls are checked."""
    client.meta.events.register("before-parameter-build", check_call)
    return client


def check_call(model: Any, params: Mapping[str, Any], **_: Any) -> None:
    """Handle botocore's `before-parameter-build`: note a function's call, if it is listed.

    One for a version of an object is another action of IAM, whose name it gets. Raises UnlistedCall
    for one that is not listed.
    """
    of_version = "Version" if "VersionId" in params else ""
    call = f"{model.service_model.service_name}:{model.name}{of_version}"
    function = _calling()
    if function is None:
        return
    MADE.add((function, call))
    if call not in CALLS.get(function, frozenset()):
        raise UnlistedCall(f"{function} calls {call}: list it, and allow it to its role")


def _calling() -> str | None:
    """The function that makes the call; None if a test makes it, maybe while a function waits."""
    frame = sys._getframe(2).f_back
    files = []
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.parent.parent == FUNCTIONS:
            return file.stem
        if file.is_relative_to(_TESTS):
            break
        files.append(file)
        frame = frame.f_back
    redriving = {file.name for file in files if file.parent == _REDRIVE}
    if not redriving:
        return None
    return "firehose_redrive_puts" if "put_service.py" in redriving else "firehose_redrive"
