"""`cdclake cost`: what a deployment costs a month, meter by meter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.activity import step
from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.target import DeploymentEnvironment, DeploymentFile
from cdclake.errors import InputError

if TYPE_CHECKING:
    from cdclake.config.deployment import Deployment
    from cdclake.cost.estimate import Estimate
    from cdclake.cost.prices import Price
    from cdclake.cost.usage import Load


def cost(
    file: DeploymentFile,
    environment: DeploymentEnvironment = None,
    gb_day: Annotated[
        float | None, typer.Option(min=0, help="Gigabytes of events a day, as JSON.")
    ] = None,
    events_s: Annotated[
        float | None, typer.Option(min=0, help="Events per second, on average.")
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(help="JSON file of dollars per unit by meter, over the built-in ones."),
    ] = None,
    templates: Annotated[
        Path | None,
        typer.Option(
            help="Output folder of `cdk synth`; else the extra cdk and Node.js are needed."
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Estimate the monthly cost of a deployment in us-east-1, before tax.

    Resources billed by time are counted in the synthesized templates; requests, storage and job
    runs are estimated from --gb-day or --events-s. Unknown prices are listed and not in the total.
    """
    from cdclake.config.deployment import load_deployment
    from cdclake.cost.prices import load_prices
    from cdclake.cost.usage import Load

    known = load_prices(prices)
    deployment = load_deployment(file, environment)
    found = _estimate(deployment, Load.of(gb_day, events_s), known, templates)
    emit(found.to_json(), json_output, lambda: _render(found, deployment.prefix))


def cost_answer(file: Path, environment: str | None) -> dict[str, Any]:
    """Return the object of `cost --json` for a deployment without events."""
    from cdclake.config.deployment import load_deployment
    from cdclake.cost.prices import load_prices
    from cdclake.cost.usage import Load

    load = Load.of(None, None)
    return _estimate(load_deployment(file, environment), load, load_prices(None), None).to_json()


def _estimate(
    deployment: Deployment, load: Load, prices: Mapping[str, Price], templates: Path | None
) -> Estimate:
    from cdclake.cost.estimate import estimate
    from cdclake.cost.meters import fixed_quantities
    from cdclake.cost.usage import usage_quantities

    fixed = fixed_quantities(_templates(deployment, templates))
    return estimate([*fixed, *usage_quantities(deployment, load)], prices, deployment)


def _templates(deployment: Deployment, folder: Path | None) -> dict[str, dict[str, Any]]:
    if folder is not None:
        from cdclake.cost.cloud_assembly import read_templates

        return read_templates(folder, deployment.prefix)
    from cdclake.node_program import NODE_REMEDY, has_node, node_program
    from cdclake.stacks.node_warnings import silenced_node_warnings

    if not has_node():
        raise InputError(
            f"{node_program()!r} was not found: the templates are written by Node.js",
            f"{NODE_REMEDY}, or give the output of `cdk synth` as --templates",
        )
    with step("write the templates"):
        with silenced_node_warnings():
            from cdclake.stacks.templates import synthesize_templates
        return synthesize_templates(deployment)


def _render(found: Estimate, prefix: str) -> None:
    say(f"{prefix}: about {found.total_month_usd:,.0f} dollars a month, us-east-1, before tax")
    for line in found.lines:
        price = "unknown price" if line.month_usd is None else f"{line.month_usd:,.2f}"
        say(f"{price:>14}  {line.meter:<24} {line.quantity:>12,.0f} {line.unit:<9} {line.detail}")
    if found.unknown:
        say(f"without the meters of unknown price: {', '.join(found.unknown)}")
        say('give them in a file: --prices FILE, like {"rds.db.m7g.large": 0.168}')
    for saving in found.savings:
        say(f"saves {saving.month_usd:,.0f}: {saving.change} ({saving.consequence})")
