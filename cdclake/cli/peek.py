"""`cdclake peek`: the events of a topic of the local lake."""

from __future__ import annotations

from typing import Annotated

import typer

from cdclake.activity import step
from cdclake.cli.output import JsonOption, emit, say


def peek(
    topic: Annotated[str, typer.Argument(help="Topic, or a table by its lake or source name.")],
    last: Annotated[
        int, typer.Option("--last", min=1, max=10_000, help="Number of events to show.")
    ] = 10,
    offset: Annotated[
        int | None, typer.Option("--offset", min=0, help="First offset; default: the last events.")
    ] = None,
    partition: Annotated[int, typer.Option("--partition", min=0, help="Kafka partition.")] = 0,
    json_output: JsonOption = False,
) -> None:
    """Show events of a topic as they are in Kafka, decoded from JSON or Avro.

    Each event has its offset, its position, its key and its operation, and the reason if the lake
    refuses it. Masked values are shown masked.
    """
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.peek import peek_lines, peek_topic
    from cdclake.local.process.home import Home

    with step("read the topic"):
        lake = open_lake(Home.from_environment())
        answer = peek_topic(lake, topic, last=last, offset=offset, partition=partition)

    def render() -> None:
        for line in peek_lines(answer):
            say(line)

    emit(answer, json_output, render)
