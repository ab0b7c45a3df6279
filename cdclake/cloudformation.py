"""Requests of CloudFormation for custom resources: their answers, and actions that AWS denies."""

from __future__ import annotations

import json
import logging
import time
import urllib.request
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any, TypeVar

_TIMEOUT_S = 30
_MAX_ANSWER_BYTES = 4096  # CloudFormation ignores a longer answer and keeps waiting
# CloudFormation calls a function as soon as IAM has stored its policy, which takes effect later.
_POLICY_S, _PAUSE_S = 60.0, 5.0

Result = TypeVar("Result")

log = logging.getLogger(__name__)


def repeat_denied(action: Callable[[], Result]) -> Result:
    """Return the action's result; repeat it while AWS denies access, for a minute at most."""
    deadline = time.monotonic() + _POLICY_S
    while True:
        try:
            return action()
        except Exception as error:
            if not _is_denied(error) or time.monotonic() > deadline:
                raise
            log.info("repeated, since a new policy may not be in effect yet: %s", error)
            time.sleep(_PAUSE_S)


def _is_denied(error: Exception) -> bool:
    """Check for a denial among botocore's errors, whose class the core does not import."""
    response = getattr(error, "response", None) or {}
    code = str(response.get("Error", {}).get("Code"))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return code.startswith("AccessDenied") or bool(status == 403)


def answer(event: Mapping[str, Any], physical_id: str, outcome: Mapping[str, Any]) -> None:
    """Send `outcome` to CloudFormation: `Status`, with `Data`, or with `Reason` if it is FAILED.

    If the answer to an update has a new `physical_id`, CloudFormation deletes the old resource.
    Network errors propagate: CloudFormation then waits until its timeout.
    """
    request = urllib.request.Request(
        event["ResponseURL"],
        data=_spelled(event, physical_id, outcome),
        method="PUT",
        headers={"Content-Type": ""},  # the URL is signed for an empty value
    )
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
        log.info("%s of %s: %s", event["RequestType"], physical_id, outcome["Status"])


def answer_failure(
    event: Mapping[str, Any], physical_id: str, why: str, *, log_stream: str
) -> None:
    """Send a failure with the reason, truncated to the size limit, and the log stream's name."""
    where = f"; log {log_stream}"
    failed = {"Status": "FAILED", "Reason": where}
    room = _MAX_ANSWER_BYTES - len(_spelled(event, physical_id, failed))
    answer(event, physical_id, {**failed, "Reason": _beginning(why, room) + where})


def _spelled(event: Mapping[str, Any], physical_id: str, outcome: Mapping[str, Any]) -> bytes:
    body = {
        **outcome,
        "PhysicalResourceId": physical_id,
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }
    return json.dumps(body).encode()


def _beginning(text: str, most: int) -> str:
    """Return the longest prefix that fits into `most` bytes of JSON: a character takes up to 12."""
    spent = accumulate(len(json.dumps(letter)) - len('""') for letter in text)
    return text[: bisect_right(list(spent), most)]
