"""The estimated cost follows from the templates, and every resource type has a meter or is free."""

from __future__ import annotations

import json

import pytest

from cdclake.config.deployment import load_deployment
from cdclake.cost.estimate import estimate
from cdclake.cost.meters import BY_USAGE, FREE, HOURS, METERS, fixed_quantities
from cdclake.cost.prices import PRICES, load_prices
from cdclake.cost.usage import Load, usage_quantities
from scripts.cost_page import PAGE, environment_estimate, page
from tests.source_tree import PROJECT
from tests.synth.deployments import VARIANTS, Synthesized

FIRST = PROJECT / "docs" / "runbooks" / "first-deployment.md"


def quantities(deployed: Synthesized) -> dict[str, float]:
    """The month's units of each meter."""
    found: dict[str, float] = {}
    for each in fixed_quantities(deployed.templates):
        found[each.meter] = found.get(each.meter, 0.0) + each.quantity
    return found


@pytest.mark.parametrize("name", VARIANTS)
def test_every_resource_has_a_meter_or_is_known_to_be_free(variants, name):
    kinds = {
        resource["Type"]
        for template in variants[name].templates.values()
        for resource in template["Resources"].values()
    }
    known = METERS.keys() | BY_USAGE.keys() | FREE
    assert {kind for kind in kinds if not kind.startswith("Custom::")} <= known
    assert not METERS.keys() & (BY_USAGE.keys() | FREE)


def test_what_is_billed_by_time_is_what_the_templates_hold(created, variants):
    found = quantities(created)
    assert found["msk.kafka.m7g.large"] == 3 * HOURS
    assert found["msk.storage"] == 300
    assert found["rds.db.t4g.medium"] == 2 * HOURS
    assert found["rds.storage"] == 200
    assert found["connect.mcu"] == HOURS
    assert found["vpc.endpoint"] == 6 * 3 * HOURS
    assert found["secrets.secret"] == 3  # the administrator's is among them
    assert "rds.db.t4g.medium" not in quantities(variants["existing"])
    governed = quantities(variants["governed"])
    assert governed["aurora.capacity"] == 2 * HOURS  # a capacity of 1, for writer and standby
    assert governed["msk.express.m7g.large"] == 3 * HOURS
    assert "msk.storage" not in governed
    assert quantities(variants["web logs"])["fargate.cpu"] == 2 * 0.25 * HOURS
    assert "msk.private_connectivity" in quantities(variants["delivered"])


def test_a_trial_and_dev_are_affordable():
    trial, dev = environment_estimate("trial"), environment_estimate("dev")
    assert trial.total_month_usd < 300
    assert trial.unknown == dev.unknown == ["cloudwatch.metric"]
    assert dev.total_month_usd < 700


@pytest.mark.parametrize(
    ("what", "meters"),
    [
        ("the endpoints", ["vpc.endpoint"]),
        ("the database", ["rds.db.t4g.micro", "rds.storage"]),
        ("the brokers and the connector", ["msk.kafka.t3.small", "msk.storage", "connect.mcu"]),
    ],
)
@pytest.mark.synth
def test_the_first_deployment_says_what_each_stage_adds(what, meters):
    page = " ".join(FIRST.read_text().split())
    costs = {line.meter: line.month_usd or 0.0 for line in environment_estimate("trial").lines}
    total = sum(costs[meter] for meter in meters)
    assert f"{total:.0f} dollars a month for {what})" in page


def test_the_page_is_that_of_the_command():
    assert PAGE.read_text("utf-8") == page(), "run `make docs`"


def test_unknown_prices_are_named_and_can_be_given(created, tmp_path):
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"msk.storage": 2.0, "cloudwatch.metric": 0.3}))
    (tmp_path / "pipeline.yaml").write_text(VARIANTS["created"])
    deployment = load_deployment(tmp_path / "pipeline.yaml")
    all_of_it = [
        *fixed_quantities(created.templates),
        *usage_quantities(deployment, Load.of(10, None)),
    ]
    before = estimate(all_of_it, PRICES, deployment)
    after = estimate(all_of_it, load_prices(file), deployment)
    assert before.unknown == ["cloudwatch.metric"]
    assert after.unknown == []
    [metrics] = [each.quantity for each in all_of_it if each.meter == "cloudwatch.metric"]
    more = 300 * (2.0 - 0.10) + metrics * 0.3
    assert after.total_month_usd == pytest.approx(before.total_month_usd + more, abs=0.05)
    told = after.to_json()
    assert told["total_month_usd"] == after.total_month_usd
    assert {"meter", "quantity", "price", "month_usd"} <= told["meters"][0].keys()


def test_savings_are_smaller_than_what_they_save_of(created, tmp_path):
    (tmp_path / "pipeline.yaml").write_text(VARIANTS["created"])
    deployment = load_deployment(tmp_path / "pipeline.yaml")
    found = estimate(
        [*fixed_quantities(created.templates), *usage_quantities(deployment, Load.of(0, 0))],
        PRICES,
        deployment,
    )
    saved = {saving.change: saving.month_usd for saving in found.savings}
    assert saved["aws: connector: off"] == pytest.approx(HOURS * 0.11, abs=0.01)
    assert saved["aws: network: {create: {endpoint_zones: 1}}"] == pytest.approx(87.6, abs=0.1)
    assert all(0 < usd < found.total_month_usd for usd in saved.values())
