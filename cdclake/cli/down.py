"""`cdclake down`: stop the local lake."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.cli.aligned import size
from cdclake.cli.output import JsonOption, ask_to_continue, emit, is_terminal, say


def down(
    purge: Annotated[
        bool,
        typer.Option(
            "--purge",
            help="Delete the lake and the stored login of a --source; keep the source's tables.",
        ),
    ] = False,
    keep_slot: Annotated[
        bool,
        typer.Option(
            "--keep-slot",
            help="Keep slot, publication, schema and role in a --source, which then retains WAL;"
            " the next `up` continues without reading the tables again.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before --purge deletes.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Stop all components and keep the lake, which `up` continues.

    In a database given by --source, also drop cdclake's slot, publication, schema and role, since
    an unread slot retains WAL. The next `up` then reads every table again, and the history lacks
    the changes made in between; --keep-slot avoids both. On a terminal, --purge lists what it
    deletes and asks.
    """
    from cdclake.local import shutdown
    from cdclake.local.process.home import Home

    home = Home.from_environment()
    if purge and not (yes or json_output) and is_terminal():
        _confirm(shutdown.purged_parts(home, keep_slot=keep_slot), home.path)
    answer = shutdown.down(home, purge=purge, keep_slot=keep_slot)
    emit(answer, json_output, lambda: _render(answer))


def _confirm(parts: list[dict[str, Any]], folder: Path) -> None:
    """List what is deleted, and ask whether to go on; do neither if nothing is deleted."""
    if not parts:
        return
    say(f"this deletes the lake in {folder}, and keeps the tables of the source:")
    for part in parts:
        held = "" if part["bytes"] is None else f" ({size(part['bytes'])})"
        say(f"  {part['what']}{held}: {part['where']}")
    ask_to_continue("Go on?")


def _render(answer: dict[str, Any]) -> None:
    text = "stopped" if answer["stopped"] else "nothing was running"
    purged = "the lake is deleted" if answer["deleted"] else "there is no lake to delete"
    say(f"{text}{f'; {purged}' if answer['purged'] else ''}")
    if answer["dropped"]:
        say(f"dropped in the source: {', '.join(answer['dropped'])}")
        if not answer["purged"]:
            say("the next `cdclake up` reads every table again")
    if answer["kept"]:
        kept = ", ".join(answer["kept"])
        say(f"kept in the source: {kept}, which retains WAL until the next `cdclake up`")
