"""Failures of S3, Glue and Kafka that pass: throttling, server errors, lost connections.

Java exceptions are recognised by the classes they extend, AWS's responses by their status code or
error code. A failed task may reach the driver as text only, so the text is examined as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError

_CLASSES = frozenset(
    {
        "java.net.SocketException",  # connection refused or reset
        "java.net.SocketTimeoutException",
        "java.net.UnknownHostException",
        "java.util.concurrent.TimeoutException",
        "javax.net.ssl.SSLException",
        "org.apache.iceberg.exceptions.ServiceFailureException",
        "org.apache.iceberg.exceptions.ServiceUnavailableException",
        "org.apache.kafka.common.errors.RetriableException",
        "software.amazon.awssdk.core.exception.ApiCallTimeoutException",
        "software.amazon.awssdk.core.exception.RetryableException",
    }
)
_CODES = (
    "Throttling|ThrottlingException|ThrottledException|TooManyRequestsException"
    "|RequestLimitExceeded|RequestThrottled|ProvisionedThroughputExceededException|SlowDown"
    "|ServiceUnavailable|InternalError|InternalServiceException|RequestTimeout"
    "|OperationTimeoutException"
)
_CODE = re.compile(rf"^({_CODES})$")
_AWS_TEXT = re.compile(
    rf"Status Code: (429|5\d\d)\b|\b({_CODES}):|\bError Code: ({_CODES})\b|Rate exceeded"
    "|Unable to execute HTTP request"
)
_KAFKA_TEXT = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(Timeout|Disconnect|Network|NotLeaderOrFollower"
    r"|CoordinatorNotAvailable|LeaderNotAvailable|Retriable)Exception"
)


def is_transient_java(classes: Iterable[str], message: str) -> bool:
    """Return True if a Java exception of these classes (its own and their parents) will pass."""
    names = set(classes)
    if names & _CLASSES or any(_CODE.match(name.rpartition(".")[2]) for name in names):
        return True
    return bool(_AWS_TEXT.search(message) or _KAFKA_TEXT.search(message))


def is_transient_python(error: BaseException) -> bool:
    """Return True if boto3 was throttled, met a server error or could not connect."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code = error.response.get("Error", {}).get("Code", "")
        is_late = status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT)
        return is_late or status >= HTTPStatus.INTERNAL_SERVER_ERROR or bool(_CODE.match(code))
    return isinstance(error, BotoConnectionError | HTTPClientError)
