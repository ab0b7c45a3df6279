"""`cdclake forget`: erase rows from everything that the lake stores."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.cli.output import JsonOption, close_progress, emit, is_terminal, say_all
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    check_local,
    deployed_job,
)
from cdclake.errors import InputError, reading_failure

if TYPE_CHECKING:
    from cdclake.plan import Table

KeysOption = Annotated[
    Path | None,
    typer.Option(
        "--keys",
        help="File with one key per line, its columns separated by tabs; - for standard input.",
    ),
]
_MAX_GRACE = timedelta(hours=24)


def forget(
    table: Annotated[str, typer.Argument(help="Table, by its lake name or as SCHEMA.TABLE.")],
    key: Annotated[
        list[str] | None,
        typer.Argument(help="Keys to erase: one value per key column, as PostgreSQL reads it."),
    ] = None,
    keys: KeysOption = None,
    grace: Annotated[
        str,
        typer.Option(
            "--grace", help="How long queries that have begun may still read the replaced files."
        ),
    ] = "1m",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Erase without asking.")] = False,
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """Erase rows that the source has deleted from everything that the lake stores.

    Erase them from changelog, state, derived tables, quarantine, snapshots, tags, all object
    versions, key indexes, and the logs of a local lake. Older events of these keys are dropped from
    then on; a new row with the same key is replicated. Then decode everything that is left and
    search it for the rows' values: exit with 1 if one is found. Also list places not reached.

    This cannot be undone. Readers keep working; queries as of an earlier time omit the rows.
    """
    from cdclake.forget.erasure_report import erasure_lines

    span = _span(grace)
    listed = _given(key, keys)
    if target is Target.AWS:
        report = _erase_deployed(file, environment, table, listed, span, yes=yes)
    else:
        check_local(file, environment)
        report = _erase_here(table, listed, span, yes=yes)
    emit(report, json_output, lambda: say_all(erasure_lines(report)))
    if not report["ok"]:
        raise typer.Exit(1)


def _given(words: list[str] | None, file: Path | None) -> list[list[str]]:
    """Return the words of the command and of each line of the file; raise if there are none."""
    listed = [words] if words else []
    listed += _listed(file) if file is not None else []
    if not listed:
        raise InputError("no key to erase was given", "write the keys, or name a file by --keys")
    return listed


def _erase_here(
    name: str, listed: list[list[str]], grace: timedelta, *, yes: bool
) -> dict[str, Any]:
    from cdclake.forget.refused_plans import check_erasable
    from cdclake.jobs.forget.erase import Erasure
    from cdclake.jobs.forget.erased_keys import erasable_keys
    from cdclake.local.forget.local_erasure_backend import LocalErasureBackend
    from cdclake.local.lake.lake import open_lake
    from cdclake.local.process.home import Home

    lake = open_lake(Home.from_environment())
    table = lake.plan.table(name)
    check_erasable(lake.plan, table)
    backend, words = LocalErasureBackend(lake), [*dict.fromkeys(_keys(table, listed))]
    keys = erasable_keys(lake.dsn, table, words, lambda: backend.reader)
    _confirm(table.name, [" ".join(each) for each in words], yes=yes)
    return Erasure(backend, table, keys, grace).run()


def _erase_deployed(
    file: Path | None,
    environment: str | None,
    name: str,
    listed: list[list[str]],
    grace: timedelta,
    *,
    yes: bool,
) -> dict[str, Any]:
    from cdclake import naming
    from cdclake.deployed.erasure import erasable_table, erase

    job = deployed_job(file, environment, naming.FORGET_JOB)
    table = erasable_table(job, name)
    keys = [*dict.fromkeys(_keys(table, listed))]
    _confirm(table.name, [" ".join(each) for each in keys], yes=yes)
    return erase(job, table, keys, grace)


def _keys(table: Table, listed: list[list[str]]) -> list[tuple[str, ...]]:
    from cdclake.forget.parse_keys import parse_keys

    return [each for line in listed for each in parse_keys(table, line)]


def _span(text: str) -> timedelta:
    from cdclake.time_spans import parse_span

    span = parse_span(text)
    if span is None or span > _MAX_GRACE:
        remedy = "write a span of at most 24h, such as 30s, 5m or 2h"
        raise InputError(f"invalid --grace {text!r}", remedy)
    return span


def _listed(file: Path) -> list[list[str]]:
    try:
        read = sys.stdin.buffer.read if str(file) == "-" else file.read_bytes
        text = read().decode("utf-8-sig")  # a key may have a carriage return
    except (OSError, UnicodeDecodeError) as error:
        is_unread = isinstance(error, OSError)
        remedy = "name a file that you can read" if is_unread else "save the file as UTF-8"
        raise InputError(f"cannot read {file}: {reading_failure(error)}", remedy) from None
    # A value may hold characters that Python's splitlines() takes for the end of a line.
    end = "\r\n" if text.count("\r\n") == text.count("\n") else "\n"
    lines = text.split(end)
    _check_line_ends(file, lines)
    return [line.split("\t") for line in lines if line]


def _check_line_ends(file: Path, lines: list[str]) -> None:
    """Refuse a carriage return that may be the end of a line: a misread key erases nothing."""
    for number, line in enumerate(lines, start=1):
        if line.endswith("\r") or ("\r" in line and len(lines) == 1):
            raise InputError(
                f"the lines of {file} end differently, or in carriage returns alone: line {number}",
                "end all lines in LF, or all in CRLF; a key that ends in a carriage return can only"
                " be an argument",
            )


def _confirm(table: str, keys: list[str], *, yes: bool) -> None:
    """Ask for the key, of several for the table's name; abort with any other answer."""
    if yes:
        return
    if not is_terminal():
        raise InputError(
            "an erasure must be confirmed, and this is not a terminal", "add --yes to confirm it"
        )
    [first, *more] = keys
    wanted = table if more else first
    what = "table's name" if more else "key"
    close_progress()
    count = f"{len(keys)} {'keys' if more else 'key'}"
    # Not on standard output, which has the JSON object.
    sys.stderr.write(f"this erases {count} of {table} from the lake for good\n")
    sys.stderr.write(f"Type the {what} to go on: ")
    sys.stderr.flush()
    if sys.stdin.readline().rstrip("\n") != wanted:
        raise InputError(f"that is not the {what}: nothing was erased", "run the command again")
