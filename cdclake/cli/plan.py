"""`cdclake plan`: state what `up` or a deployment will do with a pipeline file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.cli.output import SOURCE_DSN_KEY, JsonOption, emit, say, shown_bytes
from cdclake.cli.target import Target

_UNCHANGED = "unchanged"


def plan(
    file: Annotated[Path, typer.Argument(help="Pipeline file.")],
    environment: Annotated[
        str | None, typer.Option(help="Environment of the deployment; implies --target aws.")
    ] = None,
    target: Annotated[
        Target, typer.Option(help="local: what `up` does; aws: what a deployment does.")
    ] = Target.LOCAL,
    against: Annotated[
        Path | None,
        typer.Option(
            help="Compare with this pipeline file, such as that of the last commit, instead of the"
            " deployment."
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            envvar=SOURCE_DSN_KEY,
            help="DSN of the source to ask for sizes and new tables; better in the environment"
            " variable, since other users see arguments.",
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """State the effects of a pipeline file on infrastructure, tables and data; change nothing.

    For each table: whether its rows are read, read again or rewritten, and how many by the source's
    statistics. Exit code 2: the file does not fit the lake, with the message of `up`.
    """
    if environment is not None or target is Target.AWS:
        answer = _of_deployment(file, environment, against, source)
    else:
        answer = planned_locally(file.resolve(), source, against)
    emit(answer, json_output, lambda: render(answer))


def planned_locally(file: Path, dsn: str | None, against: Path | None = None) -> dict[str, Any]:
    """Return the effects of `up FILE` on this home's lake, or on that of another file."""
    from cdclake.config.resolve import load_file, load_plan, resolve_plan
    from cdclake.local.lake_forecast import forecast_up
    from cdclake.local.process.home import Home

    declared = load_file(file)
    other = None if against is None else load_plan(against)
    return {
        "file": str(file),
        **forecast_up(
            Home.from_environment(),
            resolve_plan(declared),
            dsn,
            declared.policies.new_tables,
            against=None if other is None else (other, str(against)),
        ),
    }


def _of_deployment(
    file: Path, environment: str | None, against: Path | None, dsn: str | None
) -> dict[str, Any]:
    from cdclake.config.resolve import load_file, resolve_plan
    from cdclake.deployed.deployed_forecast import forecast_deployment
    from cdclake.local.lake.source_tls import secured
    from cdclake.local.source_forecast import ask_source

    answer = forecast_deployment(file, environment, against)
    declared = load_file(file, environment, deployed=True)
    asked = ask_source(
        None if dsn is None else secured(dsn), resolve_plan(declared), declared.policies.new_tables
    )
    return {"file": str(file), **asked.completed(answer)}


def render(answer: dict[str, Any]) -> None:
    """Print the effects as lines, what changes only."""
    compared = answer["compared_with"]
    say(f"compared with {compared}" if compared else "there is no lake yet")
    for part in answer["infrastructure"]:
        say(f"{part['change']:<11} {part['kind']} {part['name']}")
    for setting in answer["settings"]:
        say(f"{'setting':<11} {setting['key']}: {setting['before']} -> {setting['after']}")
    changed = [table for table in answer["tables"] if table["effect"] != _UNCHANGED]
    for table in changed:
        size = _size(table) if table["effect"].startswith("load") else ""
        named = table["source"] or table["table"]
        say(f"{table['effect']:<11} {named}{size}: {table['reason']}")
    for new in answer["new_tables"]:
        why = f"{new['reason']}; {new['remedy']}" if new["reason"] else "not declared yet"
        say(f"{'new table':<11} {new['source']}: {why}; `cdclake init --update FILE` adds it")
    reads = answer["reads"]
    if reads["tables"]:
        say(f"reads {reads['tables']} of {len(answer['tables'])} tables{_size(reads)}")
    elif not (changed or answer["infrastructure"] or answer["settings"]):
        say("nothing changes")
    for unknown in answer["unknown"]:
        say(unknown)


def _size(of: dict[str, Any]) -> str:
    if of["rows"] is None and of["bytes"] is None:
        return ""
    rows = "rows not known" if of["rows"] is None else f"about {of['rows']:,} rows"
    size = "size not known" if of["bytes"] is None else shown_bytes(of["bytes"])
    return f" ({rows}, {size})"
