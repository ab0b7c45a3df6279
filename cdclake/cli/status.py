"""`cdclake status`: components, the position of each table, and the slot."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Annotated, Any

import typer

from cdclake.activity import listening, step
from cdclake.cli.output import JsonOption, emit, say, say_all
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

_WATCH_INTERVAL_S = 2.0

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

    Exit with 0 if the lake is healthy, 1 if something needs attention (a table is stopped, differs
    from the source or has refused events in quarantine, a component is starting), and 4 if a
    component is down. Events that a rule withholds need none. A figure that is not known is shown
    as `-`. With --target aws also the alarms that are on; lag and freshness are those of the whole
    stream. With --watch and --json, one object a line.
    """
    if target is Target.AWS:
        from cdclake.deployed.deployed_lake import DeployedLake
        from cdclake.deployed.deployed_status import deployed_status

        lake = DeployedLake(deployed_file(file), environment)
        _show(lambda: deployed_status(lake), deployed_lines, watch, verbose, json_output)
        return
    check_local(file, environment)
    _show(local_status, status_lines, watch, verbose, json_output)


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


def _show(
    read: Callable[[], Answer], lines: Lines, watch: bool, verbose: bool, as_json: bool
) -> None:
    if watch:
        _watch(read, lines, verbose, as_json)
        return
    from cdclake.local.health import EXIT_CODES

    with step("read the figures"):
        answer = read()
    emit(answer, as_json, lambda: say_all(lines(answer, verbose)))
    if code := EXIT_CODES[answer["health"]]:
        raise typer.Exit(code)


def _watch(read: Callable[[], Answer], lines: Lines, verbose: bool, as_json: bool) -> None:
    """Show the answer again and again, on a terminal in its place."""
    with suppress(KeyboardInterrupt), listening(None):
        if not as_json and sys.stdout.isatty():
            _watch_on_terminal(read, lines, verbose)
        while True:
            answer = read()
            if as_json:
                say(json.dumps(answer, default=str))
            else:
                say_all([*lines(answer, verbose), ""])
            sys.stdout.flush()
            time.sleep(_WATCH_INTERVAL_S)


def _watch_on_terminal(read: Callable[[], Answer], lines: Lines, verbose: bool) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(screen=True, auto_refresh=False) as live:
        while True:
            shown = "\n".join([time.strftime("%H:%M:%S"), *lines(read(), verbose)])
            live.update(Text(shown, no_wrap=True, overflow="ellipsis"), refresh=True)
            time.sleep(_WATCH_INTERVAL_S)
