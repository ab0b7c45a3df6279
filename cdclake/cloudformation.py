"""Responses of a function to CloudFormation's requests for custom resources."""

from __future__ import annotations

import json
import logging
import urllib.request
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

_TIMEOUT_S = 30
_MAX_ANSWER_BYTES = 4096  # CloudFormation ignores a longer response and keeps waiting

log = logging.getLogger(__name__)


def answer(event: Mapping[str, Any], physical_id: str, outcome: Mapping[str, Any]) -> None:
    """Send CloudFormation `outcome`: `Status`, with `Data`, or with `Reason` if it is FAILED.

    If an update returns another `physical_id`, CloudFormation deletes the resource of the old one.
    Network errors are raised: CloudFormation then waits until its own timeout.
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
    """Send CloudFormation the reason of a failure, truncated to fit, and its log stream."""
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
    """Return the longest prefix that JSON encodes in `most` bytes; some characters need twelve."""
    spent = accumulate(len(json.dumps(letter)) - len('""') for letter in text)
    return text[: bisect_right(list(spent), most)]
