"""Pause and resume of a deployed stream, by control objects that keeper and stream obey."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cdclake import naming
from cdclake.control_objects import PAUSE
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.deployed_lake import DeployedLake
from cdclake.jobs.operations.table_operations import resume_stopped

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


def resume_stream(lake: DeployedLake) -> dict[str, Any]:
    """Let stopped tables rejoin, and the keeper start a paused stream within five minutes.

    Writes the requests itself: the job `operate` may be busy with a resync for hours. Returns the
    answer of the command, with what was done by table.
    """
    tables = lake.deployment.plan.all_tables
    with explained(lake.name, "resume"):
        was_paused = lake.control.read(PAUSE) is not None
        answers = resume_stopped(lake.control, tables, was_paused=was_paused)
        if was_paused:
            lake.control.delete(PAUSE)
    for table in tables:
        if table.delivery != "stream" and answers[table.name]["did"] == "resumed":
            answers[table.name] = {"did": _DID[table.delivery]}
    lines = [{"table": name, "error": None, **answer} for name, answer in answers.items()]
    return {"ok": True, "tables": lines, "was_paused": was_paused}
