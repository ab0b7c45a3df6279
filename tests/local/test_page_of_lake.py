"""The page of a real lake in Chromium: the flow, its pages, and a planted fault of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.browser.lake_with_faults import FAULTS, SHOWN_S, FaultyLake, changes_of, page_of_lake

pytestmark = [pytest.mark.slow, pytest.mark.local, pytest.mark.timeout(1200)]

HOPS = ("wal", "connector", "kafka", "changelog", "state", "readers")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyLake]:
    with page_of_lake(tmp_path_factory.mktemp("page")) as opened:
        yield opened


def test_the_page_opens_by_its_token(page: FaultyLake) -> None:
    assert page.browser.run("return location.hash") == "#/"
    assert page.marks("orders") == {"unverified"}


def test_every_hop_has_a_live_rate_lag_and_freshness(page: FaultyLake) -> None:
    with changes_of(page.lake):
        for hop in HOPS:
            page.wait_for_rate(hop)
    page.browser.wait(lambda _: "freshness" in page.facts("kafka"), SHOWN_S)  # after a heartbeat
    names = {hop: set(page.facts(hop)) for hop in HOPS}
    assert names.pop("wal") == {"state", "rate", "retained"}
    assert all({"rate", "freshness"} < found for found in names.values())
    lags = ["not confirmed", "not read", "not applied", "tables behind", "incomplete"]
    assert [lag for lag, found in zip(lags, names.values(), strict=True) if lag in found] == lags


@pytest.mark.parametrize("fault", list(FAULTS)[:-1])
def test_a_planted_fault_is_shown(page: FaultyLake, fault: str) -> None:
    page.plant(fault)


def test_one_table_is_shown(page: FaultyLake) -> None:
    text = page.go("#/table/customers", "snapshots, the newest first")
    for snapshot in page.lake.run("snapshots", "customers")["snapshots"]:
        assert str(snapshot["snapshot"]) in text
    assert "shop.yaml:12" in text and "hash" in text and "append" in text


def test_a_difference_from_the_source_has_its_line(page: FaultyLake) -> None:
    page.execute("alter table orders add column gift boolean")
    page.go("#/", "Flow")
    assert page.is_marked("orders", "schema")
    assert "shop.yaml:1" in page.go("#/table/orders", "gift")


def test_the_quarantine_has_reason_bytes_and_repair(page: FaultyLake) -> None:
    text = page.go("#/quarantine/orders", "NOT_REPRESENTABLE")
    assert "5000" in text and "cdclake replay --table orders" in text and " B" in text


def test_the_story_of_a_key_is_shown(page: FaultyLake) -> None:
    text = page.go("#/key/customers/1", "applied")
    assert "What each reader answers now" in text and "1@example.org" not in text
    text = page.go("#/key/orders/5000", "quarantined")
    assert "cdclake replay" in text


def test_jobs_and_costs_are_shown(page: FaultyLake) -> None:
    assert "maintain_tables" in page.go("#/jobs", "last run")
    page.go("#/costs", "The local lake costs nothing")


def test_a_dead_component_is_shown(page: FaultyLake) -> None:
    page.go("#/", "Components")
    page.plant("dead component")
    assert "down: connect; run `cdclake up`" in page.browser.text()


def test_a_dead_supervisor_is_shown(page: FaultyLake) -> None:
    page.lake.kill("supervisor")
    page.browser.wait(lambda text: "down: supervisor" in text, SHOWN_S)


def test_only_this_machine_is_asked(page: FaultyLake) -> None:
    asked = {urlsplit(url).hostname for url in page.browser.requested() if url.startswith("http")}
    assert asked == {"127.0.0.1"}
