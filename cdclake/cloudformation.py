"""CloudFormation's custom resources: how a function tells what became of a request."""

from __future__ import annotations

import json
import logging
import urllib.request
from collections.abc import Mapping
from typing import Any

_TIMEOUT_S = 30

log = logging.getLogger(__name__)


def answer(event: Mapping[str, Any], physical_id: str, outcome: Mapping[str, Any]) -> None:
    """Tell CloudFormation `outcome`: `Status`, with `Data`, or with `Reason` if it is FAILED.

    An update that answers another `physical_id` has CloudFormation delete what the old one names.
    Errors of the way there come out: CloudFormation then waits until its own time runs out.
    """
    body = {
        **outcome,
        "PhysicalResourceId": physical_id,
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }
    request = urllib.request.Request(
        event["ResponseURL"],
        data=json.dumps(body).encode(),
        method="PUT",
        headers={"Content-Type": ""},  # the URL is signed for an empty one
    )
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
        log.info("%s of %s: %s", event["RequestType"], physical_id, outcome["Status"])
