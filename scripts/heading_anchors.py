"""Anchors of headings as GitHub makes them, so that a link works there and on the site."""

from __future__ import annotations

import re
from collections.abc import Callable


def slugify() -> Callable[[str, str], str]:
    """Return the function that the site's Markdown calls for each heading."""
    return _anchor


def _anchor(heading: str, separator: str) -> str:
    """Return the anchor of a heading's text.

    >>> _anchor("What <t>_current costs - and why", "-")
    'what-t_current-costs---and-why'
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)
