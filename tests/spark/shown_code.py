"""Code that the pages show, for tests to execute."""

from __future__ import annotations

import re

from tests.unit.markdown import PROJECT, blocks

_CHANGELOG = re.compile(r"\b\w+\.cdc_iceberg\.orders_changes\b")


def shown_code(page: str, opening: str, changelog: str = "") -> str:
    """Return the page's only block of Python that begins so, for that changelog if it names one."""
    found = blocks(PROJECT / "docs" / page, "python")
    [code] = [block for block in found if block.startswith(opening)]
    return _CHANGELOG.sub(changelog, code)
