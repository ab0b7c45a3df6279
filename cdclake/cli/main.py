"""The command line: the verbs, and one way in which every failure ends.

A new verb is one file with one function, and one line in `VERBS`. Modules of verbs import only the
light half of the project at their top; what is heavy they import when they run.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import typer

from cdclake.cli.demo import demo
from cdclake.cli.down import down
from cdclake.cli.init import init
from cdclake.cli.job import job
from cdclake.cli.output import emit_error
from cdclake.cli.pause import pause
from cdclake.cli.redrive import redrive
from cdclake.cli.replay import replay
from cdclake.cli.resume import resume
from cdclake.cli.resync import resync
from cdclake.cli.schema import schema
from cdclake.cli.sql import sql
from cdclake.cli.status import status
from cdclake.cli.up import up
from cdclake.cli.validate import validate
from cdclake.cli.verify import verify
from cdclake.cli.views import views
from cdclake.errors import CdcError, ComponentFailed, InputError

VERBS: tuple[Callable[..., None], ...] = (
    validate,
    schema,
    init,
    up,
    status,
    verify,
    sql,
    job,
    resync,
    replay,
    redrive,
    pause,
    resume,
    views,
    down,
    demo,
)

# Typer brings its own copy of click, whose errors it exports only by their children.
_ClickError: Any = typer.BadParameter.__mro__[2]
_INTERRUPTED_EXIT_CODE = 130


def make_app() -> typer.Typer:
    """The Typer application with every verb."""
    app = typer.Typer(
        name="cdclake",
        help="Change data capture from PostgreSQL into Iceberg.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_start)  # so that it stays a group of verbs, however few
    for verb in VERBS:
        app.command(verb.__name__.replace("_", "-"))(verb)
    return app


def _start() -> None:
    """Change data capture from PostgreSQL into Iceberg."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one verb and exits with its code; what fails is said in words, never as a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    try:
        code = make_app()(given, prog_name="cdclake", standalone_mode=False)
    except CdcError as error:
        emit_error(error, as_json)
        code = error.exit_code
    except _ClickError as error:
        code = _usage_error(error, as_json)
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED_EXIT_CODE
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        code = 0
    except Exception as error:
        failure = _unexpected(error)
        emit_error(failure, as_json)
        code = failure.exit_code
    sys.exit(code if isinstance(code, int) else 0)


def _usage_error(error: Any, as_json: bool) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "cdclake"
    message = error.format_message()
    if not message and not as_json:
        return InputError.exit_code  # no verb: Typer has printed the help
    refused = InputError(message or "no command", f"`{command} --help` shows what it takes")
    emit_error(refused, as_json)
    return refused.exit_code


def _unexpected(error: Exception) -> ComponentFailed:
    """The failure to show for a mistake of ours; its traceback goes to a file in the logs."""
    from cdclake.local.process.home import Home

    text = "".join(traceback.format_exception(error))
    logs = Home.from_environment().logs
    path = logs / f"cdclake-error-{time.strftime('%Y%m%dT%H%M%S')}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        remedy = f"the traceback is in {path}; please report it"
    except OSError as unwritten:
        remedy = f"the traceback could not be written to {path} ({unwritten.strerror})"
    summary = " ".join(f"{type(error).__name__}: {error}".split())
    return ComponentFailed(f"unexpected error: {summary}", remedy, component="cli")


if __name__ == "__main__":
    main()
