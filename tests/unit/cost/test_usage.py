"""Quantities billed by use grow with the load and follow the file's schedules."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from cdclake.config.deployment import Deployment, load_deployment
from cdclake.cost.prices import load_prices
from cdclake.cost.usage import DAYS, Load, usage_quantities
from cdclake.errors import InputError
from cdclake.jobs.control.last_verified import LastVerified
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.stream.table_gauges import table_lines
from tests.unit.config.pipelines import VALID
from tests.unit.deployed.stored_lake import DELIVERED

DERIVED = """\
derived:
  notes: {sql: SELECT order_id FROM orders_current, key: [order_id], schedule: rate(30 minutes)}
  more: {sql: SELECT order_id FROM orders_current, key: [order_id]}
"""
PUBLISHED = """\
    publish:
      - hudi: {schedule: rate(30 minutes)}
      - hudi: {name: daily, schedule: rate(1 day)}
"""
SCHEDULED = VALID + "stream: {mode: scheduled}\nschedules: {apply: rate(30 minutes)}\n"


def deployment(folder: Path, text: str) -> Deployment:
    file = folder / "pipeline.yaml"
    file.write_text(text)
    return load_deployment(file)


def month(folder: Path, text: str, load: Load) -> dict[str, float]:
    """The month's units by meter; of Glue's DPU hours those of the stream alone."""
    found: dict[str, float] = {}
    for each in usage_quantities(deployment(folder, text), load):
        if each.meter != "glue.dpu" or each.detail.startswith("stream_changes"):
            found[each.meter] = found.get(each.meter, 0.0) + each.quantity
    return found


def test_an_event_is_a_kilobyte_unless_both_are_given():
    assert Load.of(None, 1000).gb_day == pytest.approx(86.4)
    assert Load.of(86.4, None).events_s == pytest.approx(1000)
    assert Load.of(None, None) == Load(events_s=0.0, gb_day=0.0)
    assert Load.of(5, 7) == Load(events_s=7, gb_day=5)


def test_requests_are_those_of_the_batches_that_have_events(tmp_path):
    quiet = month(tmp_path, VALID, Load.of(None, 0.01))
    busy = month(tmp_path, VALID, Load.of(None, 100))
    assert quiet["s3.write"] == pytest.approx(0.01 * 86_400 * DAYS * 10)
    assert busy["s3.write"] == pytest.approx(8640 * DAYS * 10)  # a batch every ten seconds


def test_a_scheduled_stream_is_billed_by_its_runs(tmp_path):
    found = month(tmp_path, SCHEDULED, Load.of(None, 0))
    assert found["glue.dpu"] == pytest.approx(48 * 2 * 2 / 60 * DAYS)  # two minutes, two workers


def test_jobs_of_derived_tables_and_rules_are_billed_by_their_runs(tmp_path):
    text = VALID + DERIVED
    found = {
        each.detail.partition(":")[0]: each.quantity
        for each in usage_quantities(deployment(tmp_path, text), Load.of(None, 1))
        if each.meter == "glue.dpu"
    }
    # Two tables, 48 and 24 runs a day, of four minutes with two workers of a DPU each.
    assert found["refresh_derived"] == pytest.approx((48 + 24) * 4 * 2 / 60 * DAYS)
    assert "check_tables" not in found


def test_the_job_of_copies_is_billed_by_its_runs(tmp_path):
    text = VALID.replace("  public.orders:\n", f"  public.orders:\n{PUBLISHED}")
    [found] = [
        each.quantity
        for each in usage_quantities(deployment(tmp_path, text), Load.of(None, 1))
        if each.detail.startswith("publish_hudi")
    ]
    assert found == pytest.approx((48 + 1) * 4 * 2 / 60 * DAYS)


def test_an_always_on_stream_grows_with_its_load(tmp_path):
    idle = month(tmp_path, VALID, Load.of(None, 1))["glue.dpu"]
    flooded = month(tmp_path, VALID, Load.of(None, 400_000))["glue.dpu"]
    assert (idle, flooded) == (2 * 730, 3 * 730)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"a": -1}',
        '{"a": true}',
        '{"a": "0.1"}',
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": 1e308}',
    ],
)
def test_prices_that_are_none_are_refused(tmp_path, text):
    file = tmp_path / "prices.json"
    file.write_text(text)
    with pytest.raises(InputError, match="price"):
        load_prices(file)


@pytest.mark.parametrize("given", ["nan", "inf", "1e300", "-1"])
def test_a_load_that_is_none_is_refused(given):
    with pytest.raises(InputError, match="invalid --gb-day"):
        Load.of(float(given), None)
    with pytest.raises(InputError, match="invalid --events-s"):
        Load.of(1, float(given))


def test_metrics_of_tables_are_counted_if_they_are_published(tmp_path):
    """As many as the stream writes for a table with a value of each."""
    beat = int(time.time() * 1e6)
    progress = Progress(
        heartbeat_committed_us=beat, tables={"orders": TableProgress(state_behind_since=0.0)}
    )
    verified = {"orders": LastVerified(at="2026-11-30T00:00:00+00:00", equal=True)}
    [line] = table_lines("shop", progress, verified, time.time())
    published = json.loads(line)["_aws"]["CloudWatchMetrics"][0]["Metrics"]
    on = f"{VALID}{DELIVERED}aws: {{monitoring: {{table_metrics: true}}}}\n"
    counted = [month(tmp_path, text, Load.of(None, 0))["cloudwatch.metric"] for text in (VALID, on)]
    assert counted[1] - counted[0] == len(published)
