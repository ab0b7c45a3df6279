"""The demo's proof: `verify`, and its result in one line."""

from __future__ import annotations

from typing import Any

from cdclake.local.lake.lake import LocalLake
from cdclake.local.verify import verify_lake

_WAIT_S = 60.0


def prove(lake: LocalLake) -> dict[str, Any]:
    """Run `verify` and return the answer of `cdclake verify`."""
    return verify_lake(lake, _WAIT_S, None, None).to_json()


def verdict(proof: dict[str, Any]) -> str:
    """Summarize a comparison: rows compared, and the differences by kind."""
    tables = proof["tables"]
    rows = sum(table["source_rows"] for table in tables)
    figures = {
        name: sum(table[name] for table in tables)
        for name in ("missing", "extra", "different", "unsettled")
    }
    wrong = ", ".join(f"{count} {name}" for name, count in figures.items() if count)
    return f"{rows:,} rows compared: {wrong or 'equal'}"
