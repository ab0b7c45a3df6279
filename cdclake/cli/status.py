"""`cdclake status`: components, the position of each table, and the slot."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from cdclake.activity import listening, step
from cdclake.cli.aligned import ESCAPED_CONTROLS
from cdclake.cli.output import JsonOption, emit_outcome, failed_answer, say, say_all
from cdclake.cli.status_text import deployed_lines, status_lines
from cdclake.cli.table_answers import VerboseOption
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_file,
)
from cdclake.errors import CdcError, ComponentFailed
from cdclake.interrupts import until_ended

_WATCH_INTERVAL_S = 2.0
_DEPLOYED_REMEDY = "read the log group of each, then follow `cdclake runbook is-it-flowing`"

Answer = dict[str, Any]
Lines = Callable[[Answer, bool], Iterator[str]]


def status(
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again every two seconds until interrupted.")
    ] = False,
    verbose: VerboseOption = False,
    json_output: JsonOption = False,
) -> None:
    """Show the components, the tables and the replication slot.

    Exit with 0 if the lake is healthy, with 1 if something needs attention (a table is stopped,
    differs from the source or has refused events in quarantine, or a component is starting), and
    with 4 if a component is down. Withheld events, and undeclared columns under
    `new_columns: ignore`, need no attention. Unknown figures are shown as `-`.

    With --target aws, also show the alarms that are on, the schedules whose newest run failed,
    and the records that Firehose could not deliver. Refused events then need attention once the
    alarm for them is on or the table is stopped; lag is that of the whole stream, and freshness
    of a streamed table is the age of the newest heartbeat. --watch --json prints one object a line.
    """
    if target is Target.AWS:
        from cdclake.deployed.deployed_lake import DeployedLake
        from cdclake.deployed.deployed_status import deployed_status

        lake = DeployedLake(deployed_file(file), environment)
        shown = _Shown(lambda: deployed_status(lake), deployed_lines, _DEPLOYED_REMEDY)
    else:
        check_local(file, environment)
        shown = _Shown(local_status, status_lines, "run `cdclake up`, which starts what is down")
    if watch:
        _watch(shown, verbose, json_output)
    else:
        _show(shown, verbose, json_output)


def local_status() -> Answer:
    """Return the object of `status` for the local lake; raise NotRunning if there is none."""
    from cdclake.errors import NotRunning
    from cdclake.local.process.home import Home
    from cdclake.local.status import lake_status

    home = Home.from_environment()
    answer = lake_status(home)
    if not answer["components"]:
        raise NotRunning(f"no lake is running in {home.path}", "start one with `cdclake up FILE`")
    return answer


@dataclass(frozen=True, slots=True)
class _Shown:
    """Status of one target: how to read and print it, and what to do if components are down."""

    read: Callable[[], Answer]
    lines: Lines
    remedy: str

    def failure(self, answer: Answer) -> CdcError | None:
        """Return the failure that names the components that are down; None if all run."""
        if not (down := answer["down"]):
            return None
        return ComponentFailed(f"down: {', '.join(down)}", self.remedy, component=down[0])


def _show(shown: _Shown, verbose: bool, as_json: bool) -> None:
    from cdclake.local.health import EXIT_CODES

    with step("read the figures"):
        answer = shown.read()
    lines = shown.lines(answer, verbose)
    emit_outcome(answer, as_json, lambda: say_all(lines), shown.failure(answer))
    if code := EXIT_CODES[answer["health"]]:
        raise typer.Exit(code)


def _watch(shown: _Shown, verbose: bool, as_json: bool) -> None:
    """Show the answer again and again, on a terminal in its place."""
    with until_ended(), listening(None):
        if not as_json and sys.stdout.isatty():
            _watch_on_terminal(shown, verbose)
        while True:
            answer = shown.read()
            if as_json:
                say(json.dumps(failed_answer(answer, shown.failure(answer)), default=str))
            else:
                say_all([*shown.lines(answer, verbose), ""])
            time.sleep(_WATCH_INTERVAL_S)


def _watch_on_terminal(shown: _Shown, verbose: bool) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(screen=True, auto_refresh=False) as live:
        while True:
            lines = [time.strftime("%H:%M:%S"), *shown.lines(shown.read(), verbose)]
            text = "\n".join(lines).translate(ESCAPED_CONTROLS)
            live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
            time.sleep(_WATCH_INTERVAL_S)
