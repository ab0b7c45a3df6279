"""How every verb speaks: one JSON object on standard output, or text for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from cdclake.errors import CdcError

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def emit(obj: Mapping[str, Any], as_json: bool, render: Callable[[], None]) -> None:
    """Prints `obj` as exactly one JSON object, or lets `render` print it for people."""
    if as_json:
        _write(json.dumps(obj, default=str))
    else:
        render()


def say(text: str) -> None:
    """Prints a line of a result for people."""
    _write(text)


def error_object(error: CdcError) -> dict[str, Any]:
    """The error as the contract's object; `component` and `log_tail` where the error has them."""
    shown = {"code": error.code, "message": error.message, "remedy": error.remedy}
    more = {name: getattr(error, name, "") for name in ("component", "log_tail")}
    return {"ok": False, "error": {**shown, **{k: v for k, v in more.items() if v}}}


def emit_error(error: CdcError, as_json: bool) -> None:
    """Prints what failed and what to do: JSON on standard output, or text on standard error."""
    if as_json:
        _write(json.dumps(error_object(error)))
        return
    lines = [f"error: {error.message}"]
    if tail := getattr(error, "log_tail", ""):
        lines.append(str(tail).rstrip())
    if error.remedy:
        lines.append(f"remedy: {error.remedy}")
    sys.stderr.write("\n".join(lines) + "\n")


def _write(text: str) -> None:
    """Prints a line, escaping what the terminal's encoding does not have."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
