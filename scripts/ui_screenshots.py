"""Write the pictures of the page in docs/how-to/ui.md: the real page over example figures.

`python -m scripts.ui_screenshots` needs Debian's chromium and chromium-driver. Columns are those of
pipelines/shop.yaml; the figures are planted, so that a table is stopped and another has a
quarantine.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from cdclake.config.resolve import load_plan
from cdclake.local.lake.source_changes import Lines
from cdclake.ui.column_path import column_path
from cdclake.ui.overview import Overview
from cdclake.ui.page_server import Answer, Query
from tests.browser.chrome import Chrome, chrome
from tests.browser.served_page import served
from tests.unit.ui.answers import status, table

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "docs" / "images"
_FILE = "pipelines/shop.yaml"
_SIZE = (1120, 720)
# By file: the address, the text that ends its drawing, and the color scheme.
PICTURES = {
    "ui-overview.png": ("#/", "rows/s", "light"),
    "ui-table.png": ("#/table/orders", "snapshots, the newest first", "light"),
    "ui-quarantine.png": ("#/quarantine/orders", "NOT_REPRESENTABLE", "dark"),
}


def example_answers() -> dict[str, Answer]:
    """Return the answers of an example lake, with a stopped table and a refused event."""
    stopped = "order_items is stopped; fix the cause, then run `cdclake resume`"
    refused = (
        "orders: 1 events in quarantine; `cdclake quarantine orders` shows why,"
        " `cdclake replay` processes them again"
    )
    readings = count()

    def read() -> dict[str, Any]:
        n = 80 * next(readings)
        return status(
            table("customers", changes_rows=1_812, state_rows=502, live_rows=500),
            table("orders", changes_rows=4_711 + n, end_offset=4_711 + n, quarantined=1),
            table("order_items", state="stopped", lag_events=212, last_verified=None),
            health="attention",
            attention=[stopped, refused],
            slot={"wal_bytes": 4096, "limit_bytes": None, "wal_position": 10_000 + 300 * n},
            file=_FILE,
        )

    overview = Overview(read, {"target": "local", "refresh_s": 2})
    return {
        "overview": lambda _: overview.answer(),
        "table": _columns,
        "snapshots": lambda _: {"ok": True, "snapshots": [_snapshot(n) for n in range(4)]},
        "quarantine": lambda _: {"ok": True, "events": [_EVENT]},
    }


def _columns(query: Query) -> dict[str, Any]:
    declared = load_plan(PROJECT / _FILE).table(query["table"][0])
    line = partial(Lines(str(PROJECT / _FILE)).of, declared)
    return {"ok": True, "table": declared.name, "source": declared.source, "file": _FILE,
            "columns": column_path(declared, line)}  # fmt: skip


def _snapshot(number: int) -> dict[str, Any]:
    return {
        "relation": "orders", "snapshot": str(8_315_402_847_593 + 977 * number), "operation":
        "append", "committed_at": f"2026-11-26T20:0{number}:12.000+00:00", "rows": 1_000 + number,
        "files": 4 + number, "bytes": 90_000 + 1_500 * number, "tags": [], "current": number == 3,
    }  # fmt: skip


_EVENT = {
    "table": "orders", "key": {"order_id": 5000}, "at": "2026-11-26T20:03:11.120+00:00",
    "topic": "shop.public.orders", "partition": 0, "offset": 4711, "bytes": 412,
    "withheld": False, "accepted_now": False,
    "reasons": [{"column": "total", "value": "NaN",
                 "reason": "NOT_REPRESENTABLE: decimal(12,2) cannot hold 'total'"}],
    "remedy": f"declare in {_FILE} what the values need, run `cdclake up {_FILE}`, then"
              " `cdclake replay --table orders`",
}  # fmt: skip


def main() -> None:
    """Take each picture."""
    FOLDER.mkdir(exist_ok=True)
    with chrome() as browser, served(example_answers()) as url:
        browser.resize(*_SIZE)
        browser.open(url)
        for name, (address, ends, scheme) in PICTURES.items():
            _take(browser, FOLDER / name, address, ends, scheme)


def _take(browser: Chrome, file: Path, address: str, ends: str, scheme: str) -> None:
    browser.color_scheme(scheme)
    browser.run("location.hash = arguments[0]", address)
    browser.wait(lambda text: ends in text)
    browser.run("document.activeElement.blur()")
    file.write_bytes(browser.screenshot())


if __name__ == "__main__":
    main()
