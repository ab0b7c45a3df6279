"""What stops a deployment on its way: CloudFormation lets no export change or go that is in use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.synth.deployments import Synthesized, Template
from tests.synth.rules.reading import walk


def hindrances(before: Synthesized, after: Synthesized, order: Sequence[str] = ()) -> Iterator[str]:
    """What fails when the stacks of `after` take the place of those of `before`, one by one.

    They do in `order`, or as each needs the others. A stack that `after` lacks stays as it is.
    """
    deployed = dict(before.templates)
    for name in order or _order(after):
        new = after.templates[name]
        was, is_now = _exports(deployed.get(name, {})), _exports(new)
        changed = {export for export, value in was.items() if is_now.get(export) != value}
        for other, template in deployed.items():
            if other != name and (used := changed & imports(template)):
                yield f"{name}: {other} uses {sorted(used)}"
        deployed[name] = new
        known = {export for template in deployed.values() for export in _exports(template)}
        if missing := imports(new) - known:
            yield f"{name}: nobody exports {sorted(missing)}"


def _order(deployed: Synthesized) -> list[str]:
    """As `cdk deploy --all` has it: what a stack needs comes before it, and else by name."""
    artifacts = json.loads((deployed.folder / "manifest.json").read_text())["artifacts"]
    stacks = deployed.templates.keys()
    needs = {name: stacks & artifacts[name].get("dependencies", []) for name in stacks}
    order: list[str] = []
    while len(order) < len(needs):
        order.append(min(n for n in needs if n not in order and needs[n] <= {*order}))
    return order


def _exports(template: Template) -> dict[str, Any]:
    """By name the value; of what a function answers also all that it is asked."""
    return {
        output["Export"]["Name"]: (output["Value"], _answering(template, output["Value"]))
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }


def _answering(template: Template, value: Any) -> Template | None:
    """The custom resource of which this is an answer."""
    logical = value["Fn::GetAtt"][0] if "Fn::GetAtt" in value else ""
    resource: Template = template["Resources"].get(logical, {"Type": ""})
    return resource if resource["Type"].startswith("Custom::") else None


def imports(template: Template) -> set[str]:
    """The names of the exports that the stack uses."""
    return {value for path, value in walk(template) if path[-1:] == ("Fn::ImportValue",)}
