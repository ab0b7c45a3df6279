"""Queries of people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.synth.deployments import Template


def queries_are_bounded(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Nobody's own settings, no scan without an end, no result under another key or bucket."""
    if kind == "AWS::Athena::WorkGroup":
        settings = properties.get("WorkGroupConfiguration", {})
        if settings.get("EnforceWorkGroupConfiguration") is not True:
            yield f"{kind} lets a query choose where its result goes"
        if "BytesScannedCutoffPerQuery" not in settings:
            yield f"{kind} lets a query read for any price"
        if '"SSE_KMS"' not in json.dumps(settings.get("ResultConfiguration", {})):
            yield f"{kind} leaves results under S3's own key"
    if kind == "AWS::Athena::NamedQuery" and properties.get("WorkGroup") in (None, "primary"):
        yield f"{kind} is in the workgroup of everybody"
