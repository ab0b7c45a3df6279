"""Health of a lake from the figures of `status`: what needs attention, and the exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cdclake.delivery_remedies import repair_refused

HEALTHY, ATTENTION, DOWN = "healthy", "attention", "down"
EXIT_CODES = {HEALTHY: 0, ATTENTION: 1, DOWN: 4}
_ALIVE = ("running", "starting")
_NO_STREAM = (
    "`cdclake up --no-stream` has stopped the connector and the stream: the source keeps its WAL"
    " until `cdclake up` starts them"
)


def assess_health(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return `ok`, `health`, the components that are `down`, and `attention`.

    `attention` lists what is wrong and what to do.
    """
    dead = [part["name"] for part in answer["components"] if part["state"] not in _ALIVE]
    lines = [f"down: {', '.join(dead)}; run `cdclake up`"] if dead else []
    lines += _starting(answer["components"])
    if answer.get("no_stream"):
        lines.append(_NO_STREAM)
    for table in answer["tables"]:
        lines += _of_table(table)
    for kind, shown in (("web_logs", "web logs"), ("puts", "put table")):
        for put in answer.get(kind, ()):
            if put["last_error"]:
                lines.append(f"{shown} {put[kind]}: {put['last_error']}")
    for connector in answer.get("connectors", ()):
        if connector["last_error"]:
            lines.append(f"connector {connector['connector']}: {connector['last_error']}")
    for job in answer.get("schedules", ()):
        if job["exit_code"]:
            lines.append(
                f"the scheduled job {job['job']} ended with {job['exit_code']};"
                f" `cdclake logs {job['job']}` shows why"
            )
    health = DOWN if dead else ATTENTION if lines else HEALTHY
    return {"ok": health == HEALTHY, "health": health, "down": dead, "attention": lines}


def _starting(components: list[dict[str, Any]]) -> list[str]:
    names = [part["name"] for part in components if part["state"] == "starting"]
    return [f"starting: {', '.join(names)}; wait, then run `cdclake status`"] if names else []


def _of_table(table: Mapping[str, Any]) -> Iterator[str]:
    # What a rule of the file withholds is in quarantine on purpose.
    name, refused = table["table"], (table["quarantined"] or 0) - (table["withheld"] or 0)
    if table["state"] == "stopped":
        yield f"{name} is stopped; fix the cause, then run `cdclake resume`"
    elif table["last_error"] is not None:
        yield f"{name}: {table['last_error']}"
    if refused:
        yield (
            f"{name}: {refused} events in quarantine; `cdclake quarantine {name}` shows why:"
            f" {repair_refused(name, table['delivery'])}"
        )
    for change in table["relation_changes"] or ():
        yield f"{name}: {change['message']}; {change['remedy']}"
    if any(not change["ignored"] for change in table["source_changes"] or ()):
        yield f"{name} differs from the source; see its lines for what to write into the file"
