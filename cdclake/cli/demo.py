"""`cdclake demo`: stream a simulated shop into a separate lake and compare every row."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.activity import listening
from cdclake.cli.demo_text import sample_lines, shop_lines
from cdclake.cli.output import JsonOption, close_progress, emit_outcome, say, say_progress
from cdclake.cli.verify_text import lateness
from cdclake.errors import ComponentFailed, InputError

if TYPE_CHECKING:
    from cdclake.local.demo.show import Show
    from cdclake.local.demo.tasks import Stopwatch


_OF_SHOP = ("seconds", "rate", "seed", "delivery")
_OF_SAMPLE = ("data",)

DatabaseOption = Annotated[
    str, typer.Option("--database", help="shop, or a database that others made: pagila or moma.")
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Folder with the database's files; default: CDCLAKE_PAGILA or CDCLAKE_MOMA, or for"
        " pagila a checked download.",
    ),
]


def demo(
    context: typer.Context,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="Seconds of simulated traffic.")
    ] = 20,
    rate: Annotated[
        float, typer.Option("--rate", min=1, help="Row changes per second in the source.")
    ] = 500,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the simulated traffic.")] = 1,
    delivery: Annotated[
        str, typer.Option("--delivery", help="Delivery of events to the lake: stream or firehose.")
    ] = "stream",
    database: DatabaseOption = "shop",
    data: DataOption = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the lake running for inspection.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Simulate a shop and show every stage from its database to the lake.

    With --database, load another database instead, stream it, change it and verify it; --seconds,
    --rate, --seed and --delivery are for the shop.
    """
    from cdclake.local.components.installed import check_system

    _refuse_others(context, database)
    check_system()  # before anything is downloaded
    if database != "shop":
        _demo_of(database, data, keep, json_output)
    else:
        _demo_of_shop(
            json_output, seconds=seconds, rate=rate, seed=seed, delivery=delivery, keep=keep
        )


def _refuse_others(context: typer.Context, database: str) -> None:
    """Raise InputError for an option of the other kind of database that the command line has."""
    of_shop = database == "shop"
    for name in _OF_SAMPLE if of_shop else _OF_SHOP:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            used = "a database of --database" if of_shop else "the shop"
            remedy = f"remove --{name}, or {'add' if of_shop else 'remove'} --database"
            raise InputError(f"--{name} is only for {used}", remedy)


def _demo_of_shop(json_output: bool, **given: Any) -> None:
    from cdclake.local.demo.run import PIPELINES, Options, run_demo
    from cdclake.local.demo.tasks import Stopwatch
    from cdclake.local.demo.workspace import temporary_home
    from cdclake.local.process.home import Home

    options = Options(**given)
    if options.delivery not in PIPELINES:
        raise InputError(
            f"unknown delivery {options.delivery!r}",
            "use --delivery stream or --delivery firehose",
        )
    _fetch_jars()
    watch = Stopwatch()
    title = f"cdclake demo: {options.rate:g} rows/s for {options.seconds:g} s"
    show = _show(watch, json_output, title)
    base = Home.from_environment().path
    with (
        listening(None),
        temporary_home(base, keep=options.keep) as home,
        show.open(),
    ):
        answer = run_demo(home, options, watch, show)
    answer["seconds_total"] = round(watch.elapsed, 1)
    answer["steps"] = watch.seconds()
    _end(answer | ({"home": str(home.path)} if options.keep else {}), json_output, _render)


def _demo_of(name: str, data: Path | None, keep: bool, json_output: bool) -> None:
    from cdclake.local.demo.sample_database import SAMPLES
    from cdclake.local.demo.sample_run import run_sample
    from cdclake.local.demo.show import PlainLines
    from cdclake.local.demo.tasks import Stopwatch
    from cdclake.local.demo.workspace import temporary_home
    from cdclake.local.process.home import Home

    if name not in SAMPLES:
        raise InputError(f"unknown database {name!r}", f"use shop, {' or '.join(SAMPLES)}")
    given = SAMPLES[name]
    folder = given.folder(data)
    _fetch_jars()
    watch = Stopwatch()
    show = PlainLines(watch, say_progress if json_output else say)
    base = Home.from_environment().path
    with listening(None), temporary_home(base, keep=keep) as home, show.open():
        answer = run_sample(home, given, folder, watch, show, keep=keep)
    answer["seconds_total"] = round(watch.elapsed, 1)
    _end(answer | ({"home": str(home.path)} if keep else {}), json_output, _render_sample)


def _fetch_jars() -> None:
    """Fetch the jars before the demo's own display, which does not show how far a step is."""
    from cdclake.local.components.installed import fetch_lake_jars

    fetch_lake_jars()
    close_progress()


def _end(
    answer: dict[str, Any], json_output: bool, render: Callable[[dict[str, Any]], None]
) -> None:
    emit_outcome(answer, json_output, lambda: render(answer), _lateness(answer))
    if not answer["ok"]:
        raise typer.Exit(1)


def _lateness(answer: dict[str, Any]) -> ComponentFailed | None:
    """Return the failure of a demo whose comparisons found late tables and no difference."""
    reports = [answer, answer.get("verified_while_writing", {"tables": []})]
    tables = [table for report in reports for table in report["tables"]]
    return lateness({"tables": tables}, "fix what `error` of each table names, and try again")


def _show(watch: Stopwatch, as_json: bool, title: str) -> Show:
    """Return a live panel if the terminal supports it, else plain lines."""
    from rich.console import Console

    from cdclake.local.demo.panel import LivePanel
    from cdclake.local.demo.show import PlainLines

    console = Console()
    plain = as_json or "NO_COLOR" in os.environ or not console.is_terminal
    if plain or console.is_dumb_terminal or not console.encoding.startswith("utf"):
        return PlainLines(watch, say_progress if as_json else say)
    return LivePanel(watch, console, title)


def _render(answer: dict[str, Any]) -> None:
    for line in shop_lines(answer):
        say(line)


def _render_sample(answer: dict[str, Any]) -> None:
    for line in sample_lines(answer):
        say(line)
