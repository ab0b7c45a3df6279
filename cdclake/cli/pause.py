"""`cdclake pause`: stop the stream; changes of the source wait in Kafka."""

from __future__ import annotations

from cdclake.cli.output import JsonOption, emit, say


def pause(json_output: JsonOption = False) -> None:
    """Stop the stream of all tables until `cdclake resume`."""
    from cdclake.local import shutdown
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home

    home = Home.from_environment()
    lake = open_lake(home)
    with home.changing():
        answer = shutdown.pause(home, lake)
    emit(answer, json_output, lambda: say("the stream is paused; `cdclake resume` starts it again"))
