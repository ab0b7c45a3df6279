"""Edits that put a fault into a resource of a template."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from tests.synth.deployments import Template
from tests.synth.rules.kafka import OFFSETS

Edit = Callable[[Template], None]


def put(*path: str | int, value: Any) -> Edit:
    """Set a property; the path begins below `Properties`."""

    def edit(resource: Template) -> None:
        here: Any = resource.setdefault("Properties", {})
        for part in path[:-1]:
            here = here[part]
        here[path[-1]] = value

    return edit


def drop(*path: str | int) -> Edit:
    """Remove a property."""

    def edit(resource: Template) -> None:
        here: Any = resource["Properties"]
        for part in path[:-1]:
            here = here[part]
        del here[path[-1]]

    return edit


def becomes(kind: str, properties: dict[str, Any]) -> Edit:
    """Make another resource of it."""

    def edit(resource: Template) -> None:
        resource.update(Type=kind, Properties=properties)

    return edit


def is_lost(resource: Template) -> None:
    resource["DeletionPolicy"] = "Delete"


def outlives_failure(resource: Template) -> None:
    resource["DeletionPolicy"] = "Retain"


def forgets_offsets(resource: Template) -> None:
    properties = resource["Properties"]
    if not properties["TopicName"].startswith(OFFSETS):
        raise KeyError
    properties["Configs"] = base64.b64encode(b'{"cleanup.policy": "delete"}').decode()


def clear_password(resource: Template) -> None:
    """Write a sink's password where its reference is."""
    settings = resource["Properties"]["ConnectorConfiguration"]
    settings["connection.password"] = f"not {settings['connection.password']}"


def policy(**statement: Any) -> Edit:
    """Add an Allow statement to a role's own policy."""
    document = {"Statement": [{"Effect": "Allow", **statement}]}
    return put("Policies", value=[{"PolicyName": "Seeded", "PolicyDocument": document}])
