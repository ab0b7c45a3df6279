"""The page of a real lake shows a planted fault of each kind within ten seconds.

They count from when the lake's own figures have the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.chrome import Chrome, chrome
from tests.browser.opened_page import opened_page
from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.slow, pytest.mark.local, pytest.mark.timeout(1200)]

SHOWN_S = 10
CREATED = """
create table orders (id bigint primary key, n numeric(5,2), mail text);
create table halting (id bigint primary key, n numeric(5,2));
insert into orders select i, i, i || '@example.org' from generate_series(1, 50) i;
"""
PIPELINE = """\
version: 1
name: shown
source: {database: postgres}
stream: {trigger_seconds: 2}
policies: {stop_table_after: 4}
tables:
  public.orders:
    key: [id]
    columns: {id: bigint, n: "numeric(5,2)", mail: {type: text, mask: hash}}
  public.halting: {key: [id], columns: {id: bigint, n: "numeric(5,2)"}}
"""
Opened = tuple[RunningLake, Chrome]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with chrome() as browser, lake_in(tmp_path_factory.mktemp("lake")) as lake:
        with lake.connect() as connection:
            connection.execute(CREATED)
        file = lake.home.parent / "shown.yaml"
        file.write_text(PIPELINE)
        lake.run("up", str(file), "--wait", "rows")
        with opened_page(lake.home) as url:
            browser.open(url)
            browser.wait(lambda text: "orders" in text)
            yield lake, browser


def _marks(browser: Chrome, table: str) -> set[str]:
    script = """
    const link = document.querySelector(`[data-focus="#/table/${arguments[0]}"]`);
    return [...link.closest("tr").querySelectorAll(".mark")].map((each) => each.textContent);
    """
    return set(browser.run(script, table))


def _planted(opened: Opened, table: str, mark: str, has: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until `status` has the fault, and then until the page has it."""
    lake, browser = opened
    lake.eventually(
        lambda: any(has(t) for t in lake.run("status")["tables"] if t["table"] == table), 90
    )
    browser.wait(lambda _: mark in _marks(browser, table), SHOWN_S)


def test_each_planted_fault_is_shown(opened: Opened) -> None:
    lake, browser = opened
    browser.wait(lambda _: "unverified" in _marks(browser, "orders"), SHOWN_S)
    lake.run("verify")
    browser.wait(lambda _: "unverified" not in _marks(browser, "orders"), SHOWN_S)
    with lake.connect() as connection:
        connection.execute("insert into orders values (100, 'NaN', 'x@example.org')")
        _planted(opened, "orders", "quarantine", lambda t: t["quarantined"] == 1)
        connection.execute("insert into halting select i, 'NaN' from generate_series(1, 6) i")
        _planted(opened, "halting", "stopped", lambda t: t["state"] == "stopped")
        lake.run("pause")
        connection.execute("update orders set n = n + 1 where id < 9")
        _planted(opened, "orders", "lag", lambda t: (t["lag_events"] or 0) > 0)
        lake.run("resume")
    browser.run("location.hash = '#/quarantine/orders'")
    text = browser.wait(lambda text: "NOT_REPRESENTABLE" in text)
    assert "cdclake replay --table orders" in text and "x@example.org" not in text
    browser.run("location.hash = '#/table/orders'")
    text = browser.wait(lambda text: "snapshots, the newest first" in text)
    assert "shown.yaml:10" in text and "hash" in text and "decimal(5,2)" in text
    browser.run("location.hash = '#/key/orders/1'")
    assert "1@example.org" not in browser.wait(lambda text: "applied" in text)
    browser.run("location.hash = '#/'")
    lake.kill("supervisor")
    browser.wait(lambda text: "down:" in text, SHOWN_S)
