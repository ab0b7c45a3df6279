"""CloudFormation's custom resources: how a function tells what became of a request."""

from __future__ import annotations

import json
import logging
import urllib.request
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

_TIMEOUT_S = 30
_MAX_ANSWER_BYTES = 4096  # of an answer; a longer one is none, and CloudFormation waits on

log = logging.getLogger(__name__)


def answer(event: Mapping[str, Any], physical_id: str, outcome: Mapping[str, Any]) -> None:
    """Tell CloudFormation `outcome`: `Status`, with `Data`, or with `Reason` if it is FAILED.

    An update that answers another `physical_id` has CloudFormation delete what the old one names.
    Errors of the way there come out: CloudFormation then waits until its own time runs out.
    """
    request = urllib.request.Request(
        event["ResponseURL"],
        data=_spelled(event, physical_id, outcome),
        method="PUT",
        headers={"Content-Type": ""},  # the URL is signed for an empty one
    )
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
        log.info("%s of %s: %s", event["RequestType"], physical_id, outcome["Status"])


def answer_failure(
    event: Mapping[str, Any], physical_id: str, why: str, *, log_stream: str
) -> None:
    """Tell CloudFormation why it failed, as far as there is room, and where the rest is logged."""
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
    """As much of it as JSON spells in so many bytes, of which it needs twelve for some letters."""
    spent = accumulate(len(json.dumps(letter)) - len('""') for letter in text)
    return text[: bisect_right(list(spent), most)]
