"""`cdclake logs`: the components' log lines, merged by time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_file,
)
from cdclake.errors import InputError
from cdclake.interrupts import until_ended
from cdclake.time_spans import parse_time

if TYPE_CHECKING:
    from cdclake.log_line import LogLine


def logs(
    component: Annotated[
        str | None, typer.Argument(help="Component, as `cdclake status` names it; default: all.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on with new lines until interrupted.")
    ] = False,
    since: Annotated[
        str, typer.Option(help="How far back: 30s, -10m, 2h or 1d; or a time.")
    ] = "10m",
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Show the log lines of one component, or of all, in the order of time.

    With --json, one object with the lines; with --follow too, an object for each line.
    """
    after = _parse(since)
    if target is Target.AWS:
        from cdclake.config.deployment import load_deployment
        from cdclake.deployed.deployed_logs import log_lines

        deployment = load_deployment(deployed_file(file), environment)
        lines: Iterator[LogLine] = log_lines(deployment, component, after, follow=follow)
    else:
        from cdclake.local.log_files import log_lines as local_lines
        from cdclake.local.process.home import Home

        check_local(file, environment)
        lines = local_lines(Home.from_environment(), component, after, follow=follow)
    if json_output and not follow:
        emit({"ok": True, "lines": [_to_json(line) for line in lines]}, True, lambda: None)
        return
    with until_ended() if follow else nullcontext():
        _print_each(lines, json_output)


def _print_each(lines: Iterator[LogLine], json_output: bool) -> None:
    for line in lines:
        say(json.dumps(_to_json(line)) if json_output else _to_text(line))


def _to_json(line: LogLine) -> dict[str, str]:
    return {"at": _shown(line), "component": line.component, "text": line.text}


def _to_text(line: LogLine) -> str:
    return f"{_shown(line)} {line.component:<10} {line.text}"


def _shown(line: LogLine) -> str:
    return line.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _parse(since: str) -> datetime:
    """Return the time of the first line to show; raise InputError if it is no span and no time."""
    now = datetime.now(UTC)
    time = parse_time(since, now) or parse_time(f"-{since}", now)
    if time is None:
        raise InputError(
            f"invalid --since {since!r}", "write 30s, 10m, 2h, 1d or a time like 2026-11-21T14:30Z"
        )
    return time
