"""The page in Chromium: keyboard, narrow windows, dark mode, hostile values, planted faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.browser.chrome import Chrome, chrome
from tests.browser.served_page import SNAPSHOT_ID, PlantedLake, served
from tests.unit.ui.answers import HOSTILE, status, table

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FAULT_S = 10
DEAD = [{"name": "kafka", "state": "dead", "log": "kafka.log"}]
DOWN = status(
    table("orders"), components=DEAD, health="down", attention=["down: kafka; run `cdclake up`"]
)
# By the mark that the page has to show.
FAULTS: dict[str, dict[str, Any]] = {
    "dead": DOWN,
    "stopped": status(table("orders", state="stopped")),
    "quarantine": status(table("orders", quarantined=3)),
    "lag": status(table("orders", lag_events=500)),
    "unverified": status(table("orders", last_verified=None)),
    "differs": status(table("orders", last_verified={"at": "2026-11-26", "equal": False})),
}
PAGES = ("#/", "#/table/orders", "#/quarantine", "#/quarantine/orders", "#/key/orders/7", "#/jobs",
         "#/costs")  # fmt: skip
Page = tuple[Chrome, PlantedLake]


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chrome() as found:
        yield found


@pytest.fixture
def page(browser: Chrome) -> Iterator[Page]:
    browser.resize(1200, 900)
    lake = PlantedLake()
    with served(lake.answers()) as url:
        browser.open(url)
        browser.wait(lambda text: "orders" in text and "Components" in text)
        yield browser, lake


def _marks(browser: Chrome) -> list[str]:
    script = "return [...document.querySelectorAll('tbody .mark')].map((each) => each.textContent)"
    return list(browser.run(script))


def _go(browser: Chrome, address: str) -> None:
    browser.run("document.querySelector('main').replaceChildren(); location.hash = ''")
    browser.run("location.hash = arguments[0]", address)
    browser.wait(lambda _: bool(browser.run("return document.querySelector('main h1') !== null")))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_shown(page: Page, fault: str) -> None:
    browser, lake = page
    assert fault not in _marks(browser)
    lake.status = FAULTS[fault]
    browser.wait(lambda _: fault in _marks(browser), FAULT_S)
    lake.status = status(table("orders"))
    browser.wait(lambda _: fault not in _marks(browser), FAULT_S)


def test_a_dead_component_is_a_fault_of_its_hop(page: Page) -> None:
    browser, lake = page
    fault = "return [...document.querySelectorAll('.flow .fault')].map((li) => li.dataset.hop)"
    assert browser.run(fault) == []
    lake.status = DOWN
    browser.wait(lambda text: "down: kafka; run `cdclake up`" in text, FAULT_S)
    assert browser.run(fault) == ["kafka"]


def test_a_lake_that_is_gone_is_shown(page: Page) -> None:
    browser, lake = page
    lake.status = None
    browser.wait(lambda text: "no lake is running here" in text, FAULT_S)


def test_a_lake_that_does_not_answer_is_shown(page: Page) -> None:
    browser, lake = page
    lake.answers_now.clear()
    try:
        browser.wait(lambda text: "has not answered" in text, FAULT_S)
    finally:
        lake.answers_now.set()
    browser.wait(lambda text: "has not answered" not in text)


def test_hostile_values_are_text(page: Page) -> None:
    browser, lake = page
    lake.status = status(
        *(table("orders", last_error=HOSTILE), table(HOSTILE, quarantined=1)),
        attention=[HOSTILE],
        health="attention",
        file=HOSTILE,
    )
    browser.wait(lambda text: HOSTILE in text)
    for address in PAGES[1:5]:
        _go(browser, address)
        browser.wait(lambda text: text.count(HOSTILE) > 2)
        assert browser.run("return document.querySelectorAll('img, body script').length") == 0
        assert browser.run("return document.title") == "cdclake"


@pytest.mark.parametrize("address", ["#/quarantine", "#/key/orders/7"])
def test_a_redriven_record_is_a_line_of_an_object(page: Page, address: str) -> None:
    browser, _ = page
    _go(browser, address)
    where = "line 3 of s3://lake/firehose/redriven/processing-failed/x"
    text = browser.wait(lambda text: where in text)
    assert "partition null" not in text
    assert "shop.public.orders, partition 0, offset 17" in text


def test_the_id_of_a_snapshot_is_exact(page: Page) -> None:
    browser, _ = page
    _go(browser, "#/table/orders")
    browser.wait(lambda text: str(SNAPSHOT_ID) in text)


def test_only_this_server_is_asked(page: Page) -> None:
    browser, _ = page
    browser.complaints()  # of tests before
    for address in PAGES:
        _go(browser, address)
    asked = {urlsplit(url).netloc for url in browser.requested() if url.startswith("http")}
    assert browser.run("return location.host") in asked
    assert all(place.startswith("127.0.0.1:") for place in asked)
    assert browser.complaints() == []
    script = "return fetch('http://192.0.2.1/').then(() => 'sent', (error) => error.name)"
    assert browser.run(script) == "TypeError"
    assert "Content Security Policy" in "".join(browser.complaints())


def test_the_token_leaves_the_address(page: Page) -> None:
    browser, _ = page
    assert browser.run("return location.hash") == "#/"
    browser.run("sessionStorage.clear(); location.reload()")
    browser.wait(lambda text: "the token is missing or wrong" in text)
    browser.complaints()


def test_every_page_is_reached_by_the_keyboard(page: Page) -> None:
    browser, _ = page
    focused = "return document.activeElement.textContent"
    browser.run("document.activeElement.blur()")
    browser.press("Tab")
    assert browser.run(focused) == "Skip to the content"
    browser.press("Tab", "Tab")
    assert browser.run(focused) == "Quarantine"
    browser.press("Enter")
    browser.wait(lambda text: "The newest 2 events" in text)


def test_the_focus_survives_a_refresh(page: Page) -> None:
    browser, lake = page
    browser.run("document.querySelector('[data-focus=\"#/table/customers\"]').focus()")
    lake.status = status(table("orders", state="stopped"), table("customers"))
    browser.wait(lambda _: "stopped" in _marks(browser))
    assert browser.run("return document.activeElement.textContent") == "customers"
    browser.press("Enter")
    browser.wait(lambda text: "Columns from the source to the state" in text)


def test_a_key_is_asked_for_by_the_keyboard(page: Page) -> None:
    browser, _ = page
    _go(browser, "#/key/orders")
    browser.run("document.querySelector('textarea').focus()")
    browser.press("4", "2", "Tab", "Enter")
    browser.wait(lambda text: "orders 42: applied" in text)


def test_a_key_of_a_deployment_is_shown_from_the_lake_alone(browser: Chrome) -> None:
    with served(PlantedLake(target="aws").answers()) as url:
        browser.open(url)
        browser.wait(lambda text: "orders" in text and "Components" in text)
        _go(browser, "#/key/orders/7")
        text = browser.wait(lambda text: "orders 7: applied" in text)
    assert "Of a deployment only the lake is asked, not its source and its Kafka." in text
    assert "shop.public.orders, partition 0, offset 17" in text  # its time in Kafka is unknown


@pytest.mark.parametrize("address", PAGES)
def test_every_value_is_written_out(page: Page, address: str) -> None:
    browser, _ = page
    _go(browser, address)
    text = browser.text()
    assert not [word for word in ("[object", "undefined", "NaN", "null") if word in text], text


def test_the_flow_has_rates_lags_and_freshness(page: Page) -> None:
    browser, lake = page
    lake.status = status(table("orders", end_offset=900, lag_events=7))
    browser.wait(
        lambda _: (
            "/s" in browser.run("return document.querySelector('[data-hop=kafka] dl').innerText")
        )
    )
    shown = {
        name: browser.run(
            "return document.querySelector(arguments[0]).innerText.split('\\n')",
            f"[data-hop={name}]",
        )
        for name in ("wal", "kafka", "readers")
    }
    assert "4.1 kB" in shown["wal"] and "running" in shown["wal"]
    assert "7" in shown["kafka"] and "not read" in shown["kafka"]
    assert "1.5 s" in shown["readers"]


@pytest.mark.parametrize("address", PAGES)
def test_a_narrow_window_does_not_scroll_sideways(page: Page, address: str) -> None:
    browser, _ = page
    browser.resize(320, 700)
    _go(browser, address)
    root = "document.documentElement"
    wide, seen = browser.run(f"return [{root}.scrollWidth, {root}.clientWidth]")
    assert wide <= seen <= 320


_CONTRAST = """
const light = (text) => {
  const [r, g, b] = text.match(/[\\d.]+/g).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = light(getComputedStyle(document.body).backgroundColor);
return [ground, ...[...document.querySelectorAll("h1, a, dt, dd, td, th, .mark, caption")]
  .map((each) => light(getComputedStyle(each).color))
  .map((text) => (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05))];
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable(page: Page, scheme: str) -> None:
    browser, lake = page
    lake.status = status(table("orders", state="stopped", quarantined=3))
    browser.wait(lambda _: "quarantine" in _marks(browser))
    browser.color_scheme(scheme)
    ground, *contrasts = browser.run(_CONTRAST)
    browser.color_scheme("light")
    assert (ground < 0.1) == (scheme == "dark")
    assert len(contrasts) > 20 and min(contrasts) >= 4.5
