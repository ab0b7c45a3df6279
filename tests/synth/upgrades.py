"""What CloudFormation would do to the resources of one deployment to make another of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from tests.synth.deployments import Synthesized, Template

REGION = "us-east-1"  # cfn-lint's schemas are by region; the update rules are the same in all


@dataclass(slots=True)
class Changes:
    """Resources by what happens to them, each as `stack/type/logical id`."""

    added: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    updated: dict[str, set[str]] = field(default_factory=dict)  # and the properties that change
    replaced: dict[str, set[str]] = field(default_factory=dict)

    def kinds(self, names: set[str]) -> set[str]:
        """The types of these resources."""
        return {name.split("/")[1] for name in names}


def changes(before: Synthesized, after: Synthesized) -> Changes:
    """The difference; a replacement is an update of a property that may only be set at creation."""
    old, new = _resources(before), _resources(after)
    found = Changes(added=new.keys() - old.keys(), removed=old.keys() - new.keys())
    for name in sorted(old.keys() & new.keys()):
        was, now = old[name].get("Properties", {}), new[name].get("Properties", {})
        differ = {key for key in was.keys() | now.keys() if was.get(key) != now.get(key)}
        fixed = create_only(name.split("/")[1])
        if any(_at(was, path) != _at(now, path) for path in fixed):
            found.replaced[name] = differ
        elif differ:
            found.updated[name] = differ
    return found


def _resources(deployed: Synthesized) -> dict[str, Template]:
    return {
        f"{stack}/{resource['Type']}/{logical}": resource
        for stack, template in deployed.templates.items()
        for logical, resource in template["Resources"].items()
    }


def _at(properties: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        properties = properties.get(part) if isinstance(properties, dict) else None
    return properties


@cache
def create_only(kind: str) -> frozenset[tuple[str, ...]]:
    """The type's properties of which a change makes a new resource, by CloudFormation's schema.

    Of a custom resource its function says it: ours never change their physical id.
    """
    if kind.startswith("Custom::"):
        return frozenset({("ServiceToken",)})
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(region=REGION, resource_type=kind).schema
    listed = schema.get("createOnlyProperties", [])
    return frozenset(tuple(path.removeprefix("/properties/").split("/")) for path in listed)
