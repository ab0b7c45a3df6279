"""A real lake with its page open, and a fault of each kind to plant in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from tests.browser.chrome import Chrome, chrome
from tests.browser.opened_page import opened_page
from tests.local.repeated_work import repeated
from tests.local.running import RunningLake, lake_in

SHOWN_S = 120  # the machine may be loaded; what it takes is recorded
CREATED = """
create table customers (customer_id bigint primary key, name text, mail text);
create table orders (order_id bigint primary key, customer_id bigint, total numeric(12,2),
  note text);
create table payments (payment_id bigint primary key, order_id bigint, amount numeric(12,2));
insert into customers select i, 'customer ' || i, i || '@example.org'
  from generate_series(1, 500) i;
insert into orders select i, i % 500 + 1, i * 1.25, null from generate_series(1, 1000) i;
insert into payments select i, i, i * 1.25 from generate_series(1, 900) i;
"""
PIPELINE = """\
version: 1
name: shop
source: {database: postgres}
stream: {trigger_seconds: 2}
policies: {stop_table_after: 4}
tables:
  public.customers:
    key: [customer_id]
    columns:
      customer_id: bigint
      name: text
      mail: {type: text, mask: hash}
  public.orders:
    key: [order_id]
    columns:
      order_id: bigint
      customer_id: bigint
      total: numeric(12,2)
      note: {type: text, mask: truncate(8)}
  public.payments:
    key: [payment_id]
    columns:
      payment_id: bigint
      order_id: bigint
      amount: numeric(12,2)
"""
_MARKS = """
const link = document.querySelector(`[data-focus="#/table/${arguments[0]}"]`);
return [...link.closest("tr").querySelectorAll(".mark")].map((each) => each.textContent);
"""
_FACTS = """
return [...document.querySelector(`[data-hop=${arguments[0]}]`).querySelectorAll("dt")]
  .map((each) => [each.textContent, each.nextElementSibling.textContent]);
"""
_FAULTY_HOPS = "return [...document.querySelectorAll('.flow .fault')].map((li) => li.dataset.hop)"


class FaultyLake:
    """Lake with its page open in a browser."""

    def __init__(self, lake: RunningLake, browser: Chrome) -> None:
        self.lake, self.browser = lake, browser

    def execute(self, statement: str) -> None:
        """Commit the statement in the source."""
        with self.lake.connect() as connection:
            connection.execute(statement)

    def go(self, address: str, shows: str) -> str:
        """Open a page of the lake; return its text when it has this one."""
        self.browser.run("location.hash = arguments[0]", address)
        return self.browser.wait(lambda text: shows in text, SHOWN_S)

    def facts(self, hop: str) -> dict[str, str]:
        """Return what the overview shows of a hop."""
        return dict(self.browser.run(_FACTS, hop))

    def wait_for_rate(self, hop: str) -> None:
        """Wait until something flows there."""

        def flows(_: str) -> bool:
            return self.facts(hop).get("rate", "0").split()[0] not in ("0", "-")

        self.browser.wait(flows, SHOWN_S)

    def marks(self, table: str) -> set[str]:
        """Return the marks of the table on the overview."""
        return set(self.browser.run(_MARKS, table))

    def is_marked(self, table: str, mark: str) -> bool:
        """Wait for the mark of a table, and return True."""
        self.browser.wait(lambda _: mark in self.marks(table), SHOWN_S)
        return True

    def plant(self, fault: str) -> float:
        """Plant one of FAULTS; return the seconds until it is on the page."""
        plant, is_shown = FAULTS[fault]
        plant(self)
        planted = time.monotonic()
        self.browser.wait(lambda _: is_shown(self), SHOWN_S)
        return round(time.monotonic() - planted, 1)


def _unverified(page: FaultyLake) -> None:
    """Verify every table, and then add one that no comparison has seen."""
    page.lake.run("verify")
    page.browser.wait(lambda _: "unverified" not in page.marks("orders"), SHOWN_S)
    page.execute("create table refunds (refund_id bigint primary key, amount numeric(12,2))")
    file = page.lake.home.parent / "shop.yaml"
    columns = "{refund_id: bigint, amount: 'numeric(12,2)'}"
    added = f"  public.refunds: {{key: [refund_id], columns: {columns}}}\n"
    file.write_text(f"{file.read_text()}{added}")
    page.lake.run("up", str(file), "--yes")


def _refused(page: FaultyLake) -> None:
    page.execute("insert into orders values (5000, 7, 'NaN', 'paid in kind')")


def _lagging(page: FaultyLake) -> None:
    page.browser.wait(lambda _: "lag" not in page.marks("orders"), SHOWN_S)
    page.lake.run("pause")
    page.execute("update orders set total = total + 1 where order_id < 200")


def _stopped(page: FaultyLake) -> None:
    page.execute("insert into payments select i, i, 'NaN' from generate_series(2001, 2006) i")


def _dead(page: FaultyLake) -> None:
    page.lake.kill("connect")


_Plant = Callable[[FaultyLake], None]
_IsShown = Callable[[FaultyLake], bool]
# By kind: the function that plants the fault, and its place on the page. None hides a later one.
FAULTS: dict[str, tuple[_Plant, _IsShown]] = {
    "unverified": (_unverified, lambda page: "unverified" in page.marks("refunds")),
    "quarantine": (_refused, lambda page: "quarantine" in page.marks("orders")),
    "stopped table": (_stopped, lambda page: "stopped" in page.marks("payments")),
    "lag": (_lagging, lambda page: "lag" in page.marks("orders")),
    "dead component": (_dead, lambda page: "connector" in page.browser.run(_FAULTY_HOPS)),
}


@contextmanager
def page_of_lake(folder: Path) -> Iterator[FaultyLake]:
    """Start a lake, open its page, and wait until it shows the tables."""
    with chrome() as browser, lake_in(folder) as lake:
        with lake.connect() as connection:
            connection.execute(CREATED)
        file = folder / "shop.yaml"
        file.write_text(PIPELINE)
        lake.run("up", str(file))
        with opened_page(lake.home) as url:
            browser.resize(1120, 720)
            browser.open(url)
            browser.wait(lambda text: "Components" in text, SHOWN_S)
            yield FaultyLake(lake, browser)


@contextmanager
def changes_of(lake: RunningLake) -> Iterator[None]:
    """Change orders all the time, so that rows flow."""
    starts = cycle(range(0, 1000, 20))

    def change() -> None:
        first = next(starts)
        connection.execute(
            "update orders set total = total + 1 where order_id between %s and %s",
            (first, first + 19),
        )

    with lake.connect() as connection, repeated(change, every_s=0.2):
        yield
