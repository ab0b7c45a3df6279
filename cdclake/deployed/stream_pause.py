"""Pause and resume of a deployed stream, by a control object that the stream keeper obeys."""

from __future__ import annotations

from datetime import UTC, datetime

from cdclake import naming
from cdclake.control_objects import PAUSE
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.deployed_lake import DeployedLake


def pause_stream(lake: DeployedLake) -> None:
    """Have the stream end after its current batch and stay ended, over deployments too.

    Idempotent. Changes wait in Kafka, at most as long as it retains them.
    """
    with explained(lake.name, "pause"):
        lake.control.write(PAUSE, {"since": datetime.now(UTC).isoformat(timespec="seconds")})
        lake.control.write(naming.STREAM_ORDER, {"deployment": None})


def resume_stream(lake: DeployedLake) -> bool:
    """Let the keeper start the stream again within five minutes; return whether it was paused."""
    with explained(lake.name, "resume"):
        if lake.control.read(PAUSE) is None:
            return False
        lake.control.delete(PAUSE)
    return True
