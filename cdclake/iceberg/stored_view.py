"""A view as Athena and Trino store it in the Glue catalog, and the literal in `<t>_current`.

Both store JSON in base64, with the SELECT as their own formatter writes it. So the literal is found
by its form, which no other part of the view has.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

_STORED = re.compile(r"/\* Presto View: (\S+) \*/\s*")
# `athena_views` has it in the tail's condition and in the part that fails.
_BOUND = re.compile(r"(CAST\(\s*)(-?\d+)(\s+AS\s+decimal\(38,\s*0\)\s*\))", re.IGNORECASE)
_PLACES = 2
# Subtracted from the stamp that the view looks up.
_LATENESS = re.compile(r"\)\s*-\s*(\d+)\s*\)?\s*AS\s+decimal\(38,\s*0\)", re.IGNORECASE)


def bound_of(stored: str) -> int | None:
    """Return the literal bound of a stored view in microseconds since 1970; None without one."""
    view = _parse(stored)
    found = [] if view is None else [int(bound) for _, bound, _ in _BOUND.findall(_select(view))]
    return found[0] if len(found) == _PLACES and len(set(found)) == 1 else None


def lateness_of(stored: str) -> int | None:
    """Return what a stored view subtracts from its stamp, in microseconds; None without a stamp.

    It follows from the settings of `firehose:` when the view was created.
    """
    view = _parse(stored)
    found = [] if view is None else _LATENESS.findall(_select(view))
    return int(found[0]) if len(found) == 1 else None


def with_bound(stored: str, micros: int) -> str:
    """Return the stored view with another literal bound; it must have one."""
    view = _parse(stored)
    if view is None or bound_of(stored) is None:
        raise ValueError("no view with a literal bound")
    view["originalSql"] = _BOUND.sub(rf"\g<1>{micros}\g<3>", _select(view))
    body = base64.b64encode(json.dumps(view).encode()).decode()
    return f"/* Presto View: {body} */"


def _parse(stored: str) -> dict[str, Any] | None:
    found = _STORED.fullmatch(stored)
    try:
        view = json.loads(base64.b64decode(found[1], validate=True)) if found else None
    except ValueError:
        return None
    return view if isinstance(view, dict) else None


def _select(view: dict[str, Any]) -> str:
    return str(view.get("originalSql", ""))
