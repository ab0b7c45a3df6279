"""Look up a connector of MSK Connect by its name."""

from __future__ import annotations

from typing import Any


def find_connector(kafkaconnect: Any, name: str) -> dict[str, Any] | None:
    """Return the summary of the connector with exactly this name; None if there is none.

    `kafkaconnect` is a boto3 client, whose errors propagate. AWS finds names by their prefix only,
    and its answer may have several pages.
    """
    pages = kafkaconnect.get_paginator("list_connectors").paginate(connectorNamePrefix=name)
    found = (each for page in pages for each in page["connectors"])
    return next((each for each in found if each["connectorName"] == name), None)
