"""Output of the verbs: one JSON object on standard output, or text."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from cdclake.activity import listening
from cdclake.cli.aligned import ESCAPED_CONTROLS
from cdclake.cli.progress_display import ProgressDisplay
from cdclake.errors import CdcError, ComponentFailed, InputError

SOURCE_DSN_KEY = "CDCLAKE_SOURCE_DSN"  # environment variable of `init` and `up`
LOCAL_SOURCE = "local"  # instead of a DSN: the running lake's own
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

_displays: list[ProgressDisplay] = []


@contextmanager
def ending_with_reader() -> Iterator[None]:
    """End the command without an error if the reader, like `head`, has closed the output.

    Raises ComponentFailed if the output cannot be written; the error goes to standard error then.
    """
    try:
        yield
    except BrokenPipeError:
        _discard_output()
        raise SystemExit(0) from None
    except OSError as error:
        _discard_output()
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        raise ComponentFailed(
            f"standard output cannot be written: {error.strerror}",
            "free space on the disk that it is redirected to",
            component="cli",
        ) from None


def _discard_output() -> None:
    """Discard what is still buffered: it would raise again when the interpreter exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.stdout.flush()


@contextmanager
def showing_progress(as_json: bool) -> Iterator[None]:
    """Show the steps of the block on standard error, until it prints or ends."""
    display = ProgressDisplay(as_json)
    _displays.append(display)
    try:
        with listening(display):
            yield
    finally:
        _displays.remove(display)
        display.close()


def close_progress() -> None:
    """Remove the steps from the terminal, before something is printed or asked."""
    for display in _displays:
        display.close()


def emit(obj: Mapping[str, Any], as_json: bool, render: Callable[[], None]) -> None:
    """Print `obj` as exactly one JSON object, or call `render` to print text."""
    if as_json:
        _write(json.dumps(obj, default=str, allow_nan=False))
    else:
        render()


def say(text: str) -> None:
    """Print one line of text."""
    _write(text)


def say_progress(text: str) -> None:
    """Print a line about what the command does as a JSON object on standard error."""
    sys.stderr.write(json.dumps({"progress": {"step": text.strip()}}) + "\n")


def ask_to_continue(question: str) -> None:
    """Ask on the terminal whether to continue, below the steps so far.

    Raise InputError for any answer but yes.
    """
    close_progress()
    if not typer.confirm(question):
        raise InputError("nothing was changed", "answer y to continue, or add --yes")


def say_all(lines: Iterable[str]) -> None:
    """Print lines of text."""
    for line in lines:
        _write(line)


def warning_lines(warnings: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Yield the `warnings` of an answer as lines."""
    return (f"warning: {warning['message']}; {warning['remedy']}" for warning in warnings)


def warn_all(warnings: Iterable[Mapping[str, str]]) -> None:
    """Print the `warnings` of an answer on standard error."""
    for line in warning_lines(warnings):
        sys.stderr.write((line.translate(ESCAPED_CONTROLS) if sys.stderr.isatty() else line) + "\n")


def error_object(error: CdcError) -> dict[str, Any]:
    """Return the JSON object of an error; with `component` and `log_tail` if it has them."""
    shown = {"code": error.code, "message": error.message, "remedy": error.remedy}
    more = {name: getattr(error, name, "") for name in ("component", "log_tail")}
    return {"ok": False, "error": {**shown, **{k: v for k, v in more.items() if v}}}


def failed_answer(answer: Mapping[str, Any], failure: CdcError | None) -> dict[str, Any]:
    """Return the answer with the `error` of its command, if it has failed."""
    return {**answer, **({} if failure is None else error_object(failure))}


def emit_outcome(
    answer: Mapping[str, Any], as_json: bool, render: Callable[[], None], failure: CdcError | None
) -> None:
    """Print the answer of a command, and end the command if it has failed.

    A failure leaves the answer as it is: in JSON `error` is added, as text it follows on standard
    error.
    """
    emit(failed_answer(answer, failure), as_json, render)
    if failure is None:
        return
    if not as_json:
        emit_error(failure, as_json)
    raise typer.Exit(failure.exit_code)


def emit_error(error: CdcError, as_json: bool) -> None:
    """Print an error and its remedy: JSON on standard output, or text on standard error.

    JSON that standard output does not take goes to standard error.
    """
    if as_json:
        line = json.dumps(error_object(error))
        try:
            _write(line)
        except ComponentFailed:  # from now on it is standard error
            _write(line)
        return
    close_progress()
    lines = [f"error: {error.message}"]
    if tail := getattr(error, "log_tail", ""):
        lines.append(str(tail).rstrip())
    if error.remedy:
        lines.append(f"remedy: {error.remedy}")
    text = "\n".join(lines)
    if sys.stderr.isatty():
        text = text.translate(ESCAPED_CONTROLS)
    sys.stderr.write(text + "\n")


def given_source(dsn: str) -> str:
    """Return the DSN, or that of the running lake's source for `local`.

    Raises:
        NotRunning: for `local` without a running lake
    """
    if dsn != LOCAL_SOURCE:
        return dsn
    from cdclake.local.lake.lake import running_source
    from cdclake.local.process.home import Home

    return running_source(Home.from_environment())[0]


def is_terminal() -> bool:
    """Check whether a person reads the output and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _write(text: str) -> None:
    """Print a line at once; escape what a terminal would obey and what its encoding lacks.

    The command ends as in `ending_with_reader`.
    """
    close_progress()
    if sys.stdout.isatty():
        text = text.translate(ESCAPED_CONTROLS)
    encoding = sys.stdout.encoding or "utf-8"
    with ending_with_reader():
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        sys.stdout.flush()
