"""`cdclake down`: stop the local lake."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cdclake.cli.output import JsonOption, emit, say


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
    json_output: JsonOption = False,
) -> None:
    """Stop all components and keep the lake, which `up` continues.

    A --source database loses the slot, the publication, the schema and the role of cdclake, since
    an unread slot retains WAL. The next `up` then reads every table again, and changes that were
    made meanwhile are not in the history. --keep-slot avoids both.
    """
    from cdclake.local import shutdown
    from cdclake.local.process.home import Home

    answer = shutdown.down(Home.from_environment(), purge=purge, keep_slot=keep_slot)
    emit(answer, json_output, lambda: _render(answer))


def _render(answer: dict[str, Any]) -> None:
    text = "stopped" if answer["stopped"] else "nothing was running"
    say(f"{text}{'; the lake is deleted' if answer['purged'] else ''}")
    if answer["dropped"]:
        say(f"dropped in the source: {', '.join(answer['dropped'])}")
        if not answer["purged"]:
            say("the next `cdclake up` reads every table again")
    if answer["kept"]:
        kept = ", ".join(answer["kept"])
        say(f"kept in the source: {kept}, which retains WAL until the next `cdclake up`")
