"""`cdclake plan`: state what `up` or a deployment will do with a pipeline file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cdclake.activity import step
from cdclake.cli.aligned import counted, size
from cdclake.cli.output import SOURCE_DSN_KEY, JsonOption, emit, say, say_all, warning_lines
from cdclake.cli.target import Target
from cdclake.column_changes import ADD, EARLIER_NAMES, EXCLUDE, REMOVE, RENAME, TYPE, UNDECLARE

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
            " lake or the deployment."
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
    with step("find what the file changes"):
        if environment is not None or target is Target.AWS:
            answer = _of_deployment(file, environment, against, source)
        else:
            answer = planned_locally(file.resolve(), source, against)
    emit(answer, json_output, lambda: render(answer))


def planned_locally(file: Path, dsn: str | None, against: Path | None = None) -> dict[str, Any]:
    """Return the effects of `up FILE` on this home's lake, or on that of another file."""
    from cdclake.config.resolve import load_file, load_plan, resolve_plan

    declared = load_file(file)
    plan, new_tables = resolve_plan(declared), declared.policies.new_tables
    if against is not None:
        from cdclake.local.file_forecast import forecast_against

        other = load_plan(against), str(against)
        return {"file": str(file), **forecast_against(plan, str(file), dsn, new_tables, other)}
    from cdclake.local.lake_forecast import forecast_up
    from cdclake.local.process.home import Home

    home = Home.from_environment()
    return {"file": str(file), **forecast_up(home, plan, str(file), dsn, new_tables)}


def _of_deployment(
    file: Path, environment: str | None, against: Path | None, dsn: str | None
) -> dict[str, Any]:
    from cdclake.config.resolve import load_file, resolve_plan
    from cdclake.deployed.deployed_forecast import forecast_deployment
    from cdclake.local.lake.source_tls import secured
    from cdclake.local.source_forecast import ask_source

    answer = forecast_deployment(file, environment, against)
    declared = load_file(file, environment, deployed=True)
    source = None if dsn is None else secured(dsn)
    new_tables = declared.policies.new_tables
    asked = ask_source(source, resolve_plan(declared), new_tables, embedded=False)
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
        held = _size(table) if table["effect"].startswith("load") else ""
        named = table["source"] or table["table"]
        why = "; ".join(filter(None, [_columns(table["columns"]), table["reason"]]))
        say(f"{table['effect']:<11} {named}{held}: {why}")
    for new in answer["new_tables"]:
        why = f"{new['reason']}; {new['remedy']}" if new["reason"] else "not declared yet"
        say(f"{'new table':<11} {new['source']}: {why}; `cdclake init --update FILE` adds it")
    reads = answer["reads"]
    if reads["tables"]:
        reading = "to read:" if answer["by_resync"] else "reads"
        total = counted(len(answer["tables"]), "table")
        say(f"{reading} {reads['tables']} of {total}{_size(reads)}")
    elif not (changed or answer["infrastructure"] or answer["settings"]):
        say(f"nothing changes{' in what was compared' if answer['unknown'] else ''}")
    say_all(answer["unknown"])
    say_all(warning_lines(answer["warnings"]))


def _columns(changes: Sequence[dict[str, Any]]) -> str:
    return ", ".join(map(_column, changes))


def _column(changed: dict[str, Any]) -> str:
    """Return the change of a column as a few words."""
    name, before, after = changed["column"], changed["before"], changed["after"]
    stays = "its values stay"
    return {
        ADD: f"+ {name} {after}",
        REMOVE: f"- {name} ({stays})",
        EXCLUDE: f"- {name} (excluded{f'; {stays}' if before else ''})",
        UNDECLARE: f"{name} no longer excluded",
        TYPE: f"{name} {before} -> {after}",
        RENAME: f"{before} renamed to {after}",
        EARLIER_NAMES: f"{name} renamed_from: [{before}] -> [{after}]",
    }[changed["change"]]


def _size(of: dict[str, Any]) -> str:
    if of["rows"] is None and of["bytes"] is None:
        return ""
    rows = "rows not known" if of["rows"] is None else f"about {counted(of['rows'], 'row')}"
    held = "size not known" if of["bytes"] is None else size(of["bytes"])
    return f" ({rows}, {held})"
