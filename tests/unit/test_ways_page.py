"""docs/ways.md is the newest, and its figures follow from their sources."""

import json
import re

import pytest

from cdclake.config.deployment import load_deployment
from cdclake.cost.usage import DAYS, Load, usage_quantities
from scripts import ways_page
from scripts.ways_page import (
    GIGABYTES,
    PAGE,
    PROJECT,
    always_on,
    firehose,
    page,
    scheduled,
    sink,
)

SHOP = PROJECT / "pipelines" / "shop_firehose.yaml"


def test_the_page_is_the_newest():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_a_day_of_what_runs_all_day_is_hours_by_price():
    assert always_on(1) == always_on(100) == pytest.approx(2 * 24 * 0.44)
    assert sink(1) == pytest.approx(24 * 0.11)


def test_what_is_measured_counts(monkeypatch):
    """By a machine that takes nothing for an event only starts and prices by the GB are left."""
    monkeypatch.setattr(ways_page, "_median", lambda *_, **__: 0.0)
    starts = 24 * 2 / 60 * 2 * 0.44
    assert scheduled(100) == pytest.approx(starts)
    assert firehose(100) == pytest.approx(2 * starts + 100 * 0.029 + 0.1024 * 0.20)
    monkeypatch.setattr(ways_page, "_median", lambda *_, **__: 2.0)
    assert scheduled(1) == pytest.approx(starts + 1e6 * (2 / 2e5 + 2 / 2e4) / 3600 * 2 * 0.44)


def test_firehose_starts_the_jobs_that_cost_counts(monkeypatch):
    """Without load, the page and `cdclake cost` agree."""
    quantities = usage_quantities(load_deployment(SHOP, "dev"), Load.of(0, None))
    jobs = [
        each.quantity / DAYS * ways_page.DPU
        for each in quantities
        if each.meter == "glue.dpu" and each.detail.startswith(("stream_changes", "apply_changes"))
    ]
    assert len(jobs) == 2
    monkeypatch.setattr(ways_page, "_median", lambda *_, **__: 0.0)
    assert firehose(0) == pytest.approx(sum(jobs))


def test_an_hourly_stream_is_cheaper_than_firehose_applied_hourly():
    assert all(scheduled(gigabytes) < firehose(gigabytes) for gigabytes in GIGABYTES)
    assert scheduled(0) + 24 * 2 / 60 * 2 * 0.44 > firehose(1) / 2, "most of it are starts"


def test_with_our_settings_the_sink_lacked_only_truncates():
    """As committed; tests/local/test_iceberg_sink.py measures it again."""
    measured = json.loads((ways_page.RESULTS / "iceberg-sink.json").read_text())["measures"]
    assert measured["earliest"]["missing"].keys() == {"t"}
    assert measured["latest_first"]["missing"].keys() > {"t"}
    for run in measured.values():
        assert (run["committed_twice"], run["unexplained_rows"], run["different_values"]) == (
            0,
            0,
            0,
        )


def test_every_managed_offer_has_its_source_and_the_date_of_reading():
    section = PAGE.read_text().split("## When not to use cdclake")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    offers = " ".join(row[0] for row in rows)
    for offer in ("MSK", "S3 Tables", "RDS", "Glue zero-ETL", "Firehose", "DMS"):
        assert offer in offers
    assert all(re.search(r"\]\(https://docs[.]aws[.]amazon[.]com/", row[-1]) for row in rows)
    assert re.search(r"were read on \d{4}-\d{2}-\d{2}", section)
