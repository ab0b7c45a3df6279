"""`cdclake up`: start or repair the local lake."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.cli.output import (
    SOURCE_DSN_KEY,
    JsonOption,
    ask_to_continue,
    emit,
    is_terminal,
    say_all,
)
from cdclake.cli.up_text import up_lines
from cdclake.errors import CdcError


class Wait(StrEnum):
    """Condition for `up` to return."""

    STARTED = "started"
    ROWS = "rows"


def up(
    file: Annotated[
        Path | None, typer.Argument(help="Pipeline file to stream; by default the lake's last one.")
    ] = None,
    no_stream: Annotated[
        bool,
        typer.Option("--no-stream", help="Start neither connectors nor stream; stop both."),
    ] = False,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            envvar=SOURCE_DSN_KEY,
            help="DSN of an existing database to use instead of the lake's own; better in the"
            " environment variable, since other users see arguments.",
        ),
    ] = None,
    wait: Annotated[
        Wait,
        typer.Option(
            help="started: return when changes stream; rows: when every table's rows are in."
        ),
    ] = Wait.STARTED,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before tables are read again.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Start the lake, or the components that are down; with FILE, stream its tables.

    If it fails, it stops what it has started. A paused lake stays paused until `cdclake resume`.
    On a terminal it asks before it reads tables again that the lake has (`cdclake plan FILE`).
    """
    if not (no_stream or yes or json_output) and is_terminal():
        _confirm(file, source)
    answer = _up(file, source, wait, stream=not no_stream)
    emit(answer, json_output, lambda: say_all(up_lines(answer)))


def _confirm(file: Path | None, dsn: str | None) -> None:
    """Ask whether to go on if tables are read again; what cannot be foreseen is not asked."""
    from cdclake.cli.plan import planned_locally, render
    from cdclake.local.process.home import Home
    from cdclake.plan_effects import LOAD_AGAIN

    chosen = _chosen_file(Home.from_environment(), file)
    if chosen is None:
        return
    try:
        answer = planned_locally(chosen, dsn)
    except CdcError:  # `up` refuses it too, or heals what did not answer
        return
    if any(table["effect"] == LOAD_AGAIN for table in answer["tables"]):
        render(answer)
        ask_to_continue("Go on?")


def _up(file: Path | None, source: str | None, wait: Wait, *, stream: bool) -> dict[str, Any]:
    from cdclake.config.resolve import load_plan
    from cdclake.local import lifecycle
    from cdclake.local.lake.process_watch import watched
    from cdclake.local.process.home import Home

    home = Home.from_environment()
    chosen = _chosen_file(home, file)
    plan = load_plan(chosen) if chosen else None
    with home.changing(), watched(home) as did:
        dsn = _kept_dsn(home, source, plan if stream else None)
        if plan is None or not stream:
            answer = lifecycle.up_bare(home, plan, dsn)
        else:
            answer = lifecycle.up(home, plan, str(chosen), dsn, wait=wait)
    return {**answer, "did": [*did, *answer.get("did", [])]}


def _chosen_file(home: Any, file: Path | None) -> Path | None:
    """Return the given file, or else the file that the lake streams already."""
    from cdclake.local.lake.lake import LakeState

    if file is not None:
        return file.resolve()
    remembered = LakeState.load(home).pipeline_file
    return Path(remembered) if remembered else None


def _kept_dsn(home: Any, dsn: str | None, plan: Any = None) -> str | None:
    """Return the source's DSN: the given one, or else the one that the lake already uses.

    None is the lake's own PostgreSQL, also if the DSN names that.
    """
    from cdclake.local.lake.lake import LakeState
    from cdclake.local.lake.refused_sources import refuse_another_source, without_own
    from cdclake.local.lake.source_tls import refuse_options, secured

    state = LakeState.load(home)
    if dsn is None and state.external:
        dsn = str(home.secret("source_dsn"))
    if dsn is not None:
        refuse_options(dsn)
    dsn = without_own(home, state, dsn, plan)
    refuse_another_source(home, state, dsn)
    return None if dsn is None else secured(dsn)
