"""The command line: its verbs, and one exit for every failure.

A new verb is one file with one function, and one line in `VERBS`. The modules of the verbs import
heavy dependencies inside their functions, so that the command starts fast.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer

from cdclake import __version__
from cdclake.cli.connect import connect
from cdclake.cli.connector import connector
from cdclake.cli.cost import cost
from cdclake.cli.dbt import dbt
from cdclake.cli.demo import demo
from cdclake.cli.doctor import doctor
from cdclake.cli.down import down
from cdclake.cli.examples import example_lines
from cdclake.cli.file_argument import FileCommand
from cdclake.cli.forget import forget
from cdclake.cli.help_text import help_text
from cdclake.cli.init import init
from cdclake.cli.job import job
from cdclake.cli.logs import logs
from cdclake.cli.metrics import metrics
from cdclake.cli.migrate import migrate
from cdclake.cli.new import new
from cdclake.cli.output import emit, emit_error, say, showing_progress
from cdclake.cli.pause import pause
from cdclake.cli.peek import peek
from cdclake.cli.plan import plan
from cdclake.cli.psql import psql
from cdclake.cli.quarantine import quarantine
from cdclake.cli.redrive import redrive
from cdclake.cli.rehearse import rehearse
from cdclake.cli.replay import replay
from cdclake.cli.resume import resume
from cdclake.cli.resync import resync
from cdclake.cli.runbook import runbook
from cdclake.cli.schema import schema
from cdclake.cli.snapshots import snapshots
from cdclake.cli.source import source_sql
from cdclake.cli.sql import sql
from cdclake.cli.status import status
from cdclake.cli.target import Target
from cdclake.cli.trace import trace
from cdclake.cli.ui import ui
from cdclake.cli.up import up
from cdclake.cli.validate import validate
from cdclake.cli.verify import verify
from cdclake.cli.views import views
from cdclake.cli.which_repair import WHICH_REPAIR
from cdclake.errors import CdcError, ComponentFailed, InputError
from cdclake.extras import missing_extra
from cdclake.interrupts import ending_in_order

# By the heading that `--help` shows them under.
VERBS: dict[str, tuple[Callable[..., None], ...]] = {
    "Start": (new, doctor, init, validate, schema, migrate, plan, rehearse, up, down, demo),
    "Look": (
        *(status, ui, metrics, logs, trace, peek, quarantine, sql, snapshots, psql, verify),
        *(connect, dbt),
    ),
    "Repair": (runbook, pause, resume, job, resync, replay, redrive),
    "Erase": (forget,),
    "AWS": (cost, views, connector),
}

# Commands of two words, by the first.
GROUPS: dict[str, tuple[Callable[..., None], ...]] = {"source": (source_sql,)}
_GROUP_HELP = {"source": "Do something in the source database."}

# Typer has its own copy of click, and exports only subclasses of its errors.
_ClickError: Any = typer.BadParameter.__mro__[2]
_INTERRUPTED_EXIT_CODE = 130


def make_app() -> typer.Typer:
    """Return the Typer application with all verbs."""
    app = typer.Typer(
        name="cdclake",
        help="Change data capture from PostgreSQL into Iceberg.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_top)
    for heading, verbs in VERBS.items():
        for verb in verbs:
            name = verb.__name__.replace("_", "-")
            ends = [_example_text(name), WHICH_REPAIR if heading == "Repair" else None]
            epilog = "\n\n".join(filter(None, ends)) or None
            app.command(
                name,
                help=help_text(verb),
                rich_help_panel=heading,
                epilog=epilog,
                cls=FileCommand,
            )(verb)
    for name, verbs in GROUPS.items():
        group = typer.Typer(help=_GROUP_HELP[name], no_args_is_help=True)
        group.callback()(_start)
        for verb in verbs:
            word = verb.__name__.removeprefix(f"{name}_").replace("_", "-")
            example = _example_text(f"{name} {word}")
            group.command(word, help=help_text(verb), epilog=example)(verb)
        app.add_typer(group, name=name, rich_help_panel="Start")
    return app


def _example_text(command: str) -> str | None:
    """Return the end of a command's help; a blank line keeps its lines apart."""
    lines = example_lines(command)
    return "\n\n".join(["Examples:" if len(lines) > 1 else "Example:", *lines]) if lines else None


def commands() -> dict[str, Any]:
    """Return every command by its words, as in `source sql`."""
    found: dict[str, Any] = {}
    top: Any = typer.main.get_command(make_app())
    for name, command in top.commands.items():
        below = getattr(command, "commands", {})
        found.update({f"{name} {word}": each for word, each in below.items()} or {name: command})
    return found


def _start() -> None:
    """Keep a group a group, even with a single command."""


def _print_version(context: typer.Context, is_asked: bool) -> None:
    if is_asked:
        answer = {"ok": True, "version": __version__}
        emit(answer, context.params["json_output"], lambda: say(f"cdclake {__version__}"))
        raise typer.Exit


def _top(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, help="Print the version and exit."),
    ] = False,
    json_output: Annotated[  # eager, so that it is read before the version is printed
        bool,
        typer.Option("--json", is_eager=True, help="With --version: print one JSON object."),
    ] = False,
) -> None:
    """Change data capture from PostgreSQL into Iceberg."""
    if json_output:
        command = context.invoked_subcommand
        raise InputError(
            "--json before a command is only for --version", f"write `cdclake {command} --json`"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one verb and exit with its code; print failures as messages, never as tracebacks."""
    _open_missing_streams()
    _select_region()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with ending_in_order():
            code = _code_of(given, as_json="--json" in given)
    except Exception as error:  # the failure of a command could not be shown
        with suppress(OSError):
            sys.stderr.write(f"error: {error}\n")
        code = ComponentFailed.exit_code
    sys.exit(code if isinstance(code, int) else 0)


def _code_of(given: Sequence[str], *, as_json: bool) -> Any:
    """Run one verb, print its failure, and return its exit code."""
    try:
        with showing_progress(as_json):
            return make_app()(given, prog_name="cdclake", standalone_mode=False)
    except CdcError as error:
        emit_error(error, as_json)
        return error.exit_code
    except _ClickError as error:
        return _usage_error(error, given, as_json)
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED_EXIT_CODE
    except Exception as error:
        words = " ".join(given).replace("--target=", "--target ")
        failure = _unexpected(error, is_local=f"--target {Target.AWS}" not in words)
        emit_error(failure, as_json)
        return failure.exit_code


def _open_missing_streams() -> None:
    """Open the standard streams that the caller has closed, which are None in Python."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _select_region() -> None:
    """Have boto3, which reads AWS_DEFAULT_REGION only, use the region of AWS_REGION as the CDK."""
    if region := os.environ.get("AWS_REGION"):
        os.environ["AWS_DEFAULT_REGION"] = region


def _usage_error(error: Any, given: Sequence[str], as_json: bool) -> int:
    context = getattr(error, "ctx", None)
    command = context.command_path if context else _command_of(given)
    message = _usage_message(error.format_message())
    if not message and not as_json:
        return InputError.exit_code  # no command: Typer has printed the help
    refused = InputError(message or "no command", f"run `{command} --help` for its arguments")
    emit_error(refused, as_json)
    return refused.exit_code


def _command_of(given: Sequence[str]) -> str:
    """Return the command that the arguments begin with, which some errors of the parser lack."""
    found = next((name for name in commands() if [*given[: len(name.split())]] == name.split()), "")
    return f"cdclake {found}".rstrip()


def _usage_message(message: str) -> str:
    """Return an error of the parser without the words of pydantic, which validates the values."""
    plain = message.replace("Value error, ", "").replace("Input should be", "it must be")
    return plain.partition(", unable to parse")[0]


def _unexpected(error: Exception, *, is_local: bool) -> CdcError:
    """Return the error for a bug in cdclake; write its traceback to a file in the logs.

    A module of an extra that is not installed is no bug, nor is a dead component of a local lake.
    """
    if isinstance(error, ModuleNotFoundError) and (known := missing_extra(error)) is not None:
        return known
    from cdclake.local.process.home import ERROR_PREFIX, Home

    home = Home.from_environment()
    if is_local and os.access(home.observed_file, os.F_OK):
        from cdclake.local.lake.no_answer import dead_component

        if (dead := dead_component(home, error)) is not None:
            return dead
    text = home.without_secrets("".join(traceback.format_exception(error)))
    path = home.logs / f"{ERROR_PREFIX}{time.strftime('%Y%m%dT%H%M%S')}.log"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(text)
        remedy = f"the traceback is in {path}; please report it"
    except OSError as unwritten:
        remedy = f"the traceback could not be written to {path} ({unwritten.strerror})"
    summary = home.without_secrets(" ".join(f"{type(error).__name__}: {error}".split()))
    return ComponentFailed(f"unexpected error: {summary}", remedy, component="cli")


if __name__ == "__main__":
    main()
