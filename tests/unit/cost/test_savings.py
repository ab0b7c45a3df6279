"""Savings of an estimate whose prices are not all known."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.config.deployment import load_deployment
from cdclake.cost.estimate import Saving, estimate
from cdclake.cost.meters import Quantity
from cdclake.cost.prices import Price
from tests.unit.config.pipelines import VALID

MULTI_AZ = "aws: {source: {create: {multi_az: true}}}\n"
STORAGE = Price(usd=0.23, source="", read_on="")
INSTANCE = Price(usd=0.168, source="", read_on="")


def saving(folder: Path, prices: dict[str, Price]) -> Saving:
    """Return the saving of a source without a standby."""
    (folder / "pipeline.yaml").write_text(VALID + MULTI_AZ)
    rds = [
        Quantity(meter="rds.storage", quantity=200, unit="GB", detail="source"),
        Quantity(meter="rds.db.m7g.large", quantity=1460, unit="h", detail="source"),
    ]
    [found] = estimate(rds, prices, load_deployment(folder / "pipeline.yaml")).savings
    assert found.change == "aws: source: {create: {multi_az: false}}"
    return found


def test_saving_lacks_meters_of_unknown_price_and_says_so(tmp_path: Path) -> None:
    partial = saving(tmp_path, {"rds.storage": STORAGE})
    assert partial.month_usd == pytest.approx(23)
    assert "without meters of unknown price" in partial.consequence
    known = saving(tmp_path, {"rds.storage": STORAGE, "rds.db.m7g.large": INSTANCE})
    assert known.month_usd == pytest.approx(145.64)
    assert "unknown" not in known.consequence
