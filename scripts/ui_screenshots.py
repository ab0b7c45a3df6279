"""Write the pictures of the page in docs/how-to/ui.md, from the page of a real lake.

`python -m scripts.ui_screenshots` starts the shop's lake, plants an event that the lake refuses,
and needs Debian's chromium and chromium-driver.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser.chrome import Chrome, chrome
from tests.browser.opened_page import opened_page
from tests.local.running import RunningLake, shop_lake_in

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
_SIZE = (1100, 820)
_REFUSED = "insert into orders values (5000, 1, 'new', 'NaN', '{}', 'refused')"
# By file: the address, the text that ends its drawing, and the color scheme.
PICTURES = {
    "ui-overview.png": ("#/", "quarantine", "light"),
    "ui-table.png": ("#/table/orders", "snapshots, the newest first", "light"),
    "ui-quarantine.png": ("#/quarantine/orders", "NOT_REPRESENTABLE", "dark"),
}


def main() -> None:
    """Start the lake and take each picture."""
    with chrome() as browser, TemporaryDirectory() as folder, shop_lake_in(Path(folder)) as lake:
        lake.run("verify")
        with lake.connect() as connection:
            connection.execute("update orders set total = total + 1")
            connection.execute(_REFUSED)
        lake.eventually(lambda: _has_quarantined(lake), 90)
        with opened_page(lake.home) as url:
            browser.resize(*_SIZE)
            browser.open(url)
            for name, (address, ends, scheme) in PICTURES.items():
                _take(browser, FOLDER / name, address, ends, scheme)


def _has_quarantined(lake: RunningLake) -> bool:
    return any(table["quarantined"] for table in lake.run("status")["tables"])


def _take(browser: Chrome, file: Path, address: str, ends: str, scheme: str) -> None:
    browser.color_scheme(scheme)
    browser.run("location.hash = arguments[0]", address)
    browser.wait(lambda text: ends in text)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(browser.screenshot())


if __name__ == "__main__":
    main()
