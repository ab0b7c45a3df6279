"""`cdclake runbook`: the page of an alarm or of an occasional task."""

from __future__ import annotations

from typing import Annotated

import typer

from cdclake.cli.output import JsonOption, emit, say, say_all


def runbook(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Alarm without the deployment's prefix, or a task; without it all are listed.",
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Print the runbook of an alarm or of an occasional task, or list all of them.

    A runbook is Markdown. A link to a page in the same folder is the runbook of that name, other
    links lead to the docs of cdclake's repository. The runbook README has the alarms in the order
    to look at, and explains the names in the commands.
    """
    from cdclake.config.problems import did_you_mean
    from cdclake.errors import InputError
    from cdclake.runbooks import runbook_text, runbook_titles

    titles = runbook_titles()
    if name is None:
        listed = [{"name": each, "title": title} for each, title in titles.items()]
        width = max(map(len, titles))
        lines = [f"{each:{width}}  {title}" for each, title in titles.items()]
        emit({"ok": True, "runbooks": listed}, json_output, lambda: say_all(lines))
        return
    if name not in titles:
        found = did_you_mean(name, titles)
        raise InputError(
            f"no runbook {name!r}", " ".join(filter(None, [found, "`cdclake runbook` lists them"]))
        )
    text = runbook_text(name)
    emit(
        {"ok": True, "name": name, "text": text}, json_output, lambda: say(text.removesuffix("\n"))
    )
