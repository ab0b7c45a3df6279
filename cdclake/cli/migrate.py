"""`cdclake migrate`: bring a pipeline file to the current version of its format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cdclake.cli.output import JsonOption, emit, say


def migrate(
    file: Annotated[Path, typer.Argument(help="Pipeline file to migrate.")],
    json_output: JsonOption = False,
) -> None:
    """Bring a pipeline file to the current version of its format.

    Version 1 is the only one so far, so a valid file of version 1 is left as it is. A file without
    a known version is refused, with its line.
    """
    from cdclake.config.file_version import check_current

    version = check_current(file)
    answer = {"ok": True, "file": str(file), "version": version, "changed": False}
    emit(
        answer,
        json_output,
        lambda: say(f"{file} has version {version}, the current one: nothing to migrate"),
    )
