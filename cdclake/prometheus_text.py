"""Figures of `cdclake status` in Prometheus's text format.

A figure that is not known is left out: Prometheus marks a series without a sample as stale, while a
zero would look like a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_UP = ("running", "scheduled")  # a deployment may start its stream by a schedule
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})

# By metric of a table: the key of `status`, and the help text.
_OF_TABLE = {
    "cdclake_table_changes_rows": ("changes_rows", "Rows of the changelog."),
    "cdclake_table_state_rows": ("state_rows", "Rows of the state, with tombstones."),
    "cdclake_table_live_rows": ("live_rows", "Rows of the view of live rows."),
    "cdclake_table_lag_events": ("lag_events", "Records in Kafka that are not in the lake."),
    "cdclake_table_freshness_seconds": (
        "freshness_s",
        "Seconds from the commit of the newest change to the first snapshot with it; with"
        " --target aws, age of the newest heartbeat in the lake.",
    ),
    "cdclake_table_state_age_seconds": (
        "state_age_s",
        "Seconds since the state fell behind its changelog; 0 if it has every change. Without a"
        " value for tables whose state a schedule updates.",
    ),
    "cdclake_table_quarantined_events": (
        "quarantined",
        "Events in quarantine, with those that rules withhold.",
    ),
    "cdclake_table_withheld_events": ("withheld", "Events in quarantine that rules withhold."),
    "cdclake_table_failed_records": ("failed", "Records that Firehose could not deliver."),
}


class Sample(NamedTuple):
    """One value of a metric."""

    name: str
    value: float
    labels: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return the object that `metrics --json` prints."""
        return {"name": self.name, "value": self.value, "labels": dict(self.labels)}


HELP: Mapping[str, str] = {
    "cdclake_healthy": "1 if `cdclake status` finds nothing that needs attention.",
    "cdclake_component_up": "1 if the component is running, or waits for its schedule.",
    **{name: text for name, (_, text) in _OF_TABLE.items()},
    "cdclake_table_stopped": "1 if the table is stopped.",
    "cdclake_table_verified_timestamp_seconds": "Time of the last comparison with a result.",
    "cdclake_table_verified_equal": "1 if that comparison found the table equal.",
    "cdclake_slot_wal_bytes": "WAL that the replication slot retains.",
    "cdclake_slot_wal_limit_bytes": "Limit of that WAL; PostgreSQL drops the slot beyond it.",
    "cdclake_job_exit_code": "Exit code of the last run of a scheduled job.",
    "cdclake_lag_events": "Unread records of the topic with the most, of a deployment.",
    "cdclake_freshness_seconds": "Age of the newest heartbeat in a deployment's lake.",
    "cdclake_alarm_on": "1: the deployment's alarm is on.",
}


def samples(status: Mapping[str, Any]) -> Iterator[Sample]:
    """Yield the samples of the object that `status` prints."""
    yield Sample("cdclake_healthy", float(bool(status["ok"])), {})
    for part in status["components"]:
        running = float(part["state"] in _UP)
        yield Sample("cdclake_component_up", running, {"component": part["name"]})
    for table in status["tables"]:
        yield from _of_table(table)
    slot = status.get("slot") or {}
    for name, key in (("wal_bytes", "wal_bytes"), ("wal_limit_bytes", "limit_bytes")):
        if slot.get(key) is not None:
            yield Sample(f"cdclake_slot_{name}", float(slot[key]), {})
    for job in status.get("schedules", ()):
        if job["exit_code"] is not None:
            yield Sample("cdclake_job_exit_code", float(job["exit_code"]), {"job": job["job"]})
    yield from _of_deployment(status)


def _of_deployment(status: Mapping[str, Any]) -> Iterator[Sample]:
    """Yield the samples that only the status of a deployment has."""
    for name, key in (("lag_events", "lag_events"), ("freshness_seconds", "freshness_s")):
        if status.get(key) is not None:
            yield Sample(f"cdclake_{name}", float(status[key]), {})
    for alarm in status.get("alarms", ()):
        yield Sample("cdclake_alarm_on", 1.0, {"alarm": alarm})


def _of_table(table: Mapping[str, Any]) -> Iterator[Sample]:
    labels = {"table": table["table"]}
    for name, (key, _) in _OF_TABLE.items():
        if table.get(key) is not None:
            yield Sample(name, float(table[key]), labels)
    if table["state"] != "unknown":
        yield Sample("cdclake_table_stopped", float(table["state"] == "stopped"), labels)
    if verified := table.get("last_verified"):
        at = datetime.fromisoformat(verified["at"]).timestamp()
        yield Sample("cdclake_table_verified_timestamp_seconds", at, labels)
        yield Sample("cdclake_table_verified_equal", float(verified["equal"]), labels)


def prometheus_text(found: Sequence[Sample]) -> str:
    """Return the samples as one page; those of a metric are together, under its help."""
    lines = []
    for name, text in HELP.items():
        values = [sample for sample in found if sample.name == name]
        if values:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
            lines += [f"{name}{_labels(sample.labels)} {sample.value!r}" for sample in values]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    listed = ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in labels.items())
    return f"{{{listed}}}" if listed else ""
