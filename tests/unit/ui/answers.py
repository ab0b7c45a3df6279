"""Answers of a lake in which everything that can be wrong is wrong, with hostile values."""

from __future__ import annotations

from typing import Any

HOSTILE = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'


def table(name: str, **more: Any) -> dict[str, Any]:
    """Return the line of a healthy table with these differences."""
    return {
        "table": name, "source": f"public.{name}", "topic": name, "state": "streaming",
        "changes_rows": 300, "state_rows": 120, "live_rows": 100, "lag_events": 0,
        "end_offset": 300, "freshness_s": 1.5,
        "freshness_p50_s": 1.2, "freshness_p95_s": 2.5, "files": 7, "state_age_s": 0.0,
        "unapplied_rows": 0, "incomplete": 0, "quarantined": 0, "withheld": 0, "failed": 0,
        "last_error": None, "loading": None, "gap": None, "polled": None, "lines": [],
        "source_changes": [], "relation_changes": [],
        "last_verified": {"at": "2026-11-26T20:00:00+00:00", "equal": True},
        **more,
    }  # fmt: skip


def status(*tables: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the object of `status` for these tables."""
    return {
        "ok": True, "health": "healthy", "attention": [], "paused": False, "file": "shop.yaml",
        "components": [{"name": name, "state": "running", "log": f"{name}.log"}
                       for name in ("postgres", "kafka", "connect", "stream", "aws")],
        "tables": list(tables), "puts": [], "web_logs": [], "connectors": [], "schedules": [],
        "slot": {"wal_bytes": 4096, "unconfirmed_bytes": 512, "limit_bytes": None,
                 "wal_position": 1_000_000},
        "heartbeat": {"connector_s": 0.2, "kafka_s": 0.3},
        **more,
    }  # fmt: skip
