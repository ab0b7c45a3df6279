"""Answers to CloudFormation's requests for custom resources."""

from __future__ import annotations

import json
import logging
import urllib.request
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

_TIMEOUT_S = 30
_MAX_ANSWER_BYTES = 4096  # CloudFormation ignores a longer answer and keeps waiting

log = logging.getLogger(__name__)


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
