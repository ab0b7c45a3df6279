"""Pause and resume of a deployed stream, by a control object that the stream keeper obeys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cdclake import naming
from cdclake.control_objects import PAUSE
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.deployed_lake import DeployedLake

_DID = {
    "stream": "paused",
    "firehose": "nothing: Firehose delivers it",
    "poll": "nothing: polls read it",
}


def pause_stream(lake: DeployedLake) -> dict[str, Any]:
    """Have the stream end after its current batch and stay ended, over deployments too.

    Idempotent. Changes wait in Kafka, at most as long as it retains them. Returns the answer of the
    command, with what was done by table.
    """
    with explained(lake.name, "pause"):
        lake.control.write(PAUSE, {"since": datetime.now(UTC).isoformat(timespec="seconds")})
        lake.control.write(naming.STREAM_ORDER, {"deployment": None})
    tables = lake.deployment.plan.all_tables
    return {"ok": True, "tables": [{"table": t.name, "did": _DID[t.delivery]} for t in tables]}


def resume_stream(lake: DeployedLake) -> bool:
    """Let the keeper start the stream again within five minutes; return whether it was paused."""
    with explained(lake.name, "resume"):
        if lake.control.read(PAUSE) is None:
            return False
        lake.control.delete(PAUSE)
    return True
