"""The page of a real lake in Chromium: the flow, its pages, and a planted fault of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from tests.browser.lake_with_faults import FAULTS, SHOWN_S, FaultyLake, changes_of, page_of_lake

pytestmark = [pytest.mark.slow, pytest.mark.local, pytest.mark.timeout(1200)]

Record = Callable[[str, object], None]
HOPS = ("wal", "connector", "kafka", "changelog", "state", "readers")
_FACTS = """
return [...document.querySelector(`[data-hop=${arguments[0]}]`).querySelectorAll("dt")]
  .map((each) => [each.textContent, each.nextElementSibling.textContent]);
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyLake]:
    with page_of_lake(tmp_path_factory.mktemp("page")) as opened:
        yield opened


def _facts(page: FaultyLake, hop: str) -> dict[str, str]:
    return dict(page.browser.run(_FACTS, hop))


def _flows(page: FaultyLake, hop: str) -> bool:
    rate = _facts(page, hop).get("rate", "0 rows/s")
    return rate.split()[0] not in ("0", "-")


def test_the_page_opens_by_its_token(page: FaultyLake) -> None:
    assert page.browser.run("return location.hash") == "#/"
    assert page.marks("orders") == {"unverified"}


def test_every_hop_has_a_live_rate(page: FaultyLake) -> None:
    with changes_of(page.lake):
        for hop in HOPS:
            page.browser.wait(lambda _, hop=hop: _flows(page, hop), SHOWN_S)
    assert {hop for hop in HOPS if "freshness" in _facts(page, hop)} >= {"changelog", "readers"}


@pytest.mark.parametrize("fault", list(FAULTS)[:-1])
def test_a_planted_fault_is_shown(page: FaultyLake, fault: str, record_property: Record) -> None:
    record_property("seconds", page.plant(fault))


def test_one_table_is_shown(page: FaultyLake) -> None:
    text = page.go("#/table/customers", "snapshots, the newest first")
    assert "shop.yaml:13" in text and "hash" in text and "append" in text


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
    assert "rate(1 day)" in page.go("#/jobs", "last run")
    page.go("#/costs", "The local lake costs nothing")


def test_a_dead_component_is_shown(page: FaultyLake, record_property: Record) -> None:
    page.go("#/", "Components")
    record_property("seconds", page.plant("dead component"))
    assert "down: connect; run `cdclake up`" in page.browser.text()


def test_a_dead_supervisor_is_shown(page: FaultyLake) -> None:
    page.lake.kill("supervisor")
    page.browser.wait(lambda text: "down: supervisor" in text, SHOWN_S)


def test_only_this_machine_is_asked(page: FaultyLake) -> None:
    asked = {urlsplit(url).hostname for url in page.browser.requested() if url.startswith("http")}
    assert asked == {"127.0.0.1"}
