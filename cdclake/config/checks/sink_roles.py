"""Check of `connectors:` for a deployment: the role of each sink fits IAM's limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cdclake.config.document import Document
from cdclake.config.problems import Problem
from cdclake.connectors.declared import DeclaredConnector
from cdclake.connectors.role_names import role_names
from cdclake.plan import Plan


def check_sink_roles(document: Document, plan: Plan) -> Iterator[Problem]:
    """Check that IAM accepts the role of each connector of the plan."""
    for connector in plan.connectors:
        if role_names(plan, connector) is None:
            yield document.problem(
                ("connectors", connector.name, "tables"),
                f"IAM limits a role to 10,240 characters, which the names of these"
                f" {len(connector.tables)} tables exceed",
                f"list at most the first {_fitting(plan, connector)}, and the others in further"
                " connectors; or list every table of the pipeline in one connector, whose role"
                " then has a pattern",
            )


def _fitting(plan: Plan, connector: DeclaredConnector) -> int:
    """Return how many of the connector's tables fit while further connectors have the others."""
    counts = range(len(connector.tables), 0, -1)
    fewer = (replace(connector, tables=connector.tables[:count]) for count in counts)
    return next((len(each.tables) for each in fewer if role_names(plan, each)), 0)
