"""`cdclake psql`: a session in the lake's source database."""

from __future__ import annotations

import os
import shutil
from typing import Annotated, Any

import typer

from cdclake.cli.output import JsonOption, emit, say
from cdclake.errors import InputError


def psql(
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of psql, after `--`: -- -c 'SELECT 1'.")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Open psql in the local lake's source database, or print how to connect.

    Without an installed psql, and with --json, the connection's parameters are printed; the
    password only of the lake's own PostgreSQL. Arguments are refused then.
    """
    from cdclake.local.lake.lake import running_source, source_parts
    from cdclake.local.process.home import Home

    dsn, is_external = running_source(Home.from_environment())
    client = shutil.which("psql")
    if client is not None and not json_output:
        _replace_process(client, dsn, arguments or [])
    if arguments:
        raise _unused_arguments(json_output)
    source = source_parts(dsn) | ({"password": None} if is_external else {})
    emit({"ok": True, "source": source}, json_output, lambda: _render(source))


def _unused_arguments(json_output: bool) -> InputError:
    """Return the error of arguments that no psql gets: a script relies on what they do."""
    if json_output:
        return InputError(
            "--json prints how to connect and does not run psql",
            "remove --json, or the arguments of psql",
        )
    return InputError(
        "psql is not installed, so its arguments cannot be run",
        "install PostgreSQL's client, or use `cdclake source sql FILE`",
    )


def _replace_process(client: str, dsn: str, arguments: list[str]) -> None:
    """Become psql; other users of the machine see arguments, so the password is not among them."""
    from cdclake.local.lake.lake import without_password

    shown, password = without_password(dsn)
    secret = {"PGPASSWORD": password} if password else {}
    os.execve(client, [client, shown, *arguments], {**os.environ, **secret})


def _render(source: dict[str, Any]) -> None:
    say("psql is not installed; connect with:")
    for name, value in source.items():
        if value is not None:
            say(f"  {name} {value}")
