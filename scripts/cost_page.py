"""Write docs/cost.md: what the example's environments cost a month, and the prices behind it.

`python -m scripts.cost_page` writes it; a test fails if it is out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cdclake.config.deployment import load_deployment
from cdclake.cost.estimate import Estimate, estimate
from cdclake.cost.meters import fixed_quantities
from cdclake.cost.prices import PRICES
from cdclake.cost.usage import Load, usage_quantities
from cdclake.stacks.templates import synthesize_templates

PROJECT = Path(__file__).resolve().parents[1]
PAGE, PIPELINE = PROJECT / "docs" / "cost.md", PROJECT / "pipelines" / "shop.yaml"
ENVIRONMENTS = ("trial", "dev", "prod")
EVENTS_S = 20.0

_INTRODUCTION = """\
# Cost

`cdclake cost FILE --environment NAME` estimates a month of a deployment, in us-east-1 and before
tax. **Nothing here has run on AWS**: no bill has confirmed these figures. Meters that are billed by
time come from the synthesized templates, so every resource counts that would be created. Runs of
jobs, requests and storage come from `--gb-day` or `--events-s` and from the
[benchmarks](benchmarks.md), whose machine is not a Glue worker. Not counted: data transfer, logs,
the growth of disks, Athena's queries, backups beyond what RDS includes, runs of Glue's table
optimizers, calls of Lambda functions, and Container Insights of web servers.

A price that is not known is listed, and is missing in the total. `--prices FILE` gives it, or
replaces the built-in ones with those of your region, which AWS's price list has:

```sh
aws pricing get-products --service-code AmazonRDS --filters {filter}
```

The sizes are those of `aws: {{size: ...}}`; the environments are those of
[pipelines/shop.yaml](../pipelines/shop.yaml), here at 20 events a second on average.
"""
_FILTER = "Type=TERM_MATCH,Field=instanceType,Value=db.m7g.large"


def page() -> str:
    """Return the page's text."""
    return "".join(f"{line}\n" for line in _lines())


def environment_estimate(environment: str) -> Estimate:
    """Return the estimate of one environment of the example."""
    deployment = load_deployment(PIPELINE, environment)
    load = Load.of(None, EVENTS_S)
    fixed = fixed_quantities(synthesize_templates(deployment))
    return estimate([*fixed, *usage_quantities(deployment, load)], PRICES, deployment)


def _lines() -> Iterator[str]:
    yield _INTRODUCTION.format(filter=_FILTER)
    for environment in ENVIRONMENTS:
        yield from _environment(environment)
    yield "## Prices"
    yield ""
    yield "| meter | dollars per unit | source | read on |"
    yield "|---|---|---|---|"
    for meter, price in PRICES.items():
        yield f"| {meter} | {_short(price.usd)} | {price.source} | {price.read_on} |"


def _environment(name: str) -> Iterator[str]:
    found = environment_estimate(name)
    yield f"## `{name}`: about {found.total_month_usd:,.0f} dollars a month"
    yield ""
    if found.unknown:
        yield f"Without the meters of unknown price: {', '.join(found.unknown)}."
        yield ""
    yield "| meter | a month | of what | dollars |"
    yield "|---|---|---|---|"
    for line in found.lines:
        cost = "unknown" if line.month_usd is None else f"{line.month_usd:,.2f}"
        yield f"| {line.meter} | {line.quantity:,.0f} {line.unit} | {line.detail} | {cost} |"
    yield ""
    for saving in found.savings:
        yield f"- `{saving.change}` saves {saving.month_usd:,.0f}: {saving.consequence}."
    yield ""


def _short(usd: float) -> str:
    return f"{usd:.10f}".rstrip("0").rstrip(".")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
