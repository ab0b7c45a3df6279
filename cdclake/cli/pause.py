"""`cdclake pause`: stop the stream; changes of the source wait in Kafka."""

from __future__ import annotations

from typing import Any

from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_file,
)


def pause(
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Stop the stream of all tables until `cdclake resume`.

    Changes wait in Kafka, on AWS for at most seven days. A deployed stream ends after its current
    batch, and deployments do not start it either.
    """
    if target is Target.AWS:
        from cdclake.deployed.deployed_lake import DeployedLake
        from cdclake.deployed.stream_pause import pause_stream

        answer = pause_stream(DeployedLake(deployed_file(file), environment))
    else:
        check_local(file, environment)
        answer = _pause_here()
    emit(answer, json_output, lambda: say("the stream is paused; `cdclake resume` starts it again"))


def _pause_here() -> dict[str, Any]:
    from cdclake.local import shutdown
    from cdclake.local.lake.lake import changing_lake
    from cdclake.local.process.home import Home

    home = Home.from_environment()
    with changing_lake(home) as lake:
        return shutdown.pause(home, lake)
