"""`cdclake ui`: one local, read-only page of a lake."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from cdclake.activity import listening
from cdclake.cli.output import JsonOption, emit, say
from cdclake.cli.target import EnvironmentOption, FileOption, Target, TargetOption, check_local
from cdclake.interrupts import until_ended

_TOKEN_BYTES = 32


def ui(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of 127.0.0.1; 0 is any free one.")
    ] = 0,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Serve a page that shows the lake, until interrupted.

    It shows what `status`, `snapshots`, `quarantine`, `trace`, `job` and `cost` answer, and changes
    nothing. The printed address contains a token that is valid until the command ends; without it
    the server answers nothing.
    """
    from cdclake.cli.page_answers import deployed_answers, local_answers
    from cdclake.cli.target import deployed_file
    from cdclake.ui.page_server import page_server

    if target is Target.AWS:
        answers = deployed_answers(deployed_file(file), environment)
    else:
        check_local(file, environment)
        answers = local_answers()
    answers["overview"]({})  # a missing lake is reported now
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    # Steps of the page's answers would appear on a terminal that shows no answer.
    serving = page_server(port, token, answers)
    with serving as server, listening(None), until_ended():
        url = f"http://127.0.0.1:{server.server_port}/#token={token}"
        emit({"ok": True, "url": url}, json_output, lambda: say(f"the page is at {url}"))
        server.serve_forever()
