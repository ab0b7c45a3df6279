"""Write the pictures in docs/how-to/ui.md, of the page of a real lake with planted faults.

`python -m scripts.ui_screenshots` starts a local lake, and needs Debian's chromium and
chromium-driver. It also writes after how many seconds the page showed each fault.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser.lake_with_faults import FAULTS, FaultyLake, changes_of, page_of_lake

DOCS = Path(__file__).resolve().parents[1] / "docs"
IMAGES, SECONDS = DOCS / "images", DOCS / "proofs" / "page-faults.json"
# By file: the address, the text that ends its drawing, the color scheme, and the height.
PICTURES = {
    "ui-overview.png": ("#/", "payments is stopped", "light", 720),
    "ui-table.png": ("#/table/orders", "snapshots, the newest first", "light", 720),
    "ui-quarantine.png": ("#/quarantine/orders", "NOT_REPRESENTABLE", "dark", 480),
    "ui-key.png": ("#/key/orders/5000", "What each reader answers now", "light", 800),
}
_WIDTH = 1120


def main() -> None:
    """Plant each fault, and take the pictures after those that leave the lake running."""
    seconds = {}
    with (
        TemporaryDirectory(prefix="lake-", dir="/tmp") as folder,
        page_of_lake(Path(folder)) as page,
    ):
        for fault in FAULTS:
            if fault == "lag":
                _take_all(page)
            seconds[fault] = page.plant(fault)
    found = {"date": datetime.now(UTC).date().isoformat(), "seconds_until_shown": seconds}
    SECONDS.write_text(json.dumps(found, indent=1) + "\n")


def _take_all(page: FaultyLake) -> None:
    IMAGES.mkdir(exist_ok=True)
    with changes_of(page.lake):
        page.wait_for_rate("changelog")
        for name, (address, ends, scheme, height) in PICTURES.items():
            page.browser.resize(_WIDTH, height)
            page.browser.color_scheme(scheme)
            page.go(address, ends)
            page.browser.run("document.activeElement.blur()")
            (IMAGES / name).write_bytes(page.browser.screenshot())
    page.browser.color_scheme("light")
    page.go("#/", "Flow")


if __name__ == "__main__":
    main()
