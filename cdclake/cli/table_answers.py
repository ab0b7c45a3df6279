"""Text of answers by table: what deviates and the totals, or with `-v` every table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from cdclake.cli.aligned import aligned, counted, number, size
from cdclake.errors import CdcError, TablesFailed, reported_error

VerboseOption = Annotated[
    bool, typer.Option("-v", "--verbose", help="Show every table, not only what deviates.")
]

_MAX_NAMES = 4
_SIZES = ("files", "bytes", "snapshots")


def did_lines(tables: Sequence[Mapping[str, Any]], verbose: bool) -> Iterator[str]:
    """Yield what a verb did: with `verbose` by table, otherwise once with the tables' names."""
    if verbose and tables:
        yield from aligned(["table", "did"], [[each["table"], each["did"]] for each in tables])
    else:
        grouped: dict[str, list[str]] = {}
        for each in tables:
            grouped.setdefault(each["did"], []).append(each["table"])
        for did, names in grouped.items():
            yield f"{listed(names)}: {did}"
    for each in tables:
        for reason, count in each.get("refused", {}).items():
            yield f"  {each['table']}: {count} x {reason}"


def tables_failure(answer: Mapping[str, Any], command: str) -> CdcError | None:
    """Return the failure of a command whose answer has the errors of tables; None if it has none.

    An error that has ended a job before it reached a table is that of the command.
    """
    if answer["ok"]:
        return None
    if "error" in answer:
        return reported_error(answer["error"], command)
    names = [each["table"] for each in answer["tables"] if each["error"] is not None]
    return TablesFailed(
        f"{command} failed for {listed(names)}",
        "fix what `error` of each table names, then run the command again",
    )


def listed(names: Sequence[str]) -> str:
    """Return some of the names, and the number of the others."""
    if len(names) <= _MAX_NAMES + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_MAX_NAMES])} and {len(names) - _MAX_NAMES} more"


def replay_total(tables: Sequence[Mapping[str, Any]]) -> str:
    """Return how many events were replayed and refused again, in all tables."""
    replayed = sum(each.get("replayed", 0) for each in tables)
    refused = sum(sum(each.get("refused", {}).values()) for each in tables)
    again = f", {counted(refused, 'event')} refused again" if refused else ""
    return f"{counted(len(tables), 'table')}: {counted(replayed, 'event')} replayed{again}"


def job_lines(report: Mapping[str, Any], verbose: bool) -> Iterator[str]:
    """Yield the tables that failed, with `verbose` all, and what the job changed in total."""
    tables = report["tables"]
    shown = tables if verbose else [each for each in tables if each["error"]]
    if shown:
        names = ["table", "seconds", "rows applied", *_SIZES]
        rows = [_job_row(each) for each in shown]
        if len(shown) > 1:
            rows.append(_job_row(_total(tables)))
        yield from aligned(names, rows, names[1:])
        yield from (f"  {each['table']}: {each['error']}" for each in shown if each["error"])
    if tables:
        yield _job_total(tables)


def _job_row(line: Mapping[str, Any]) -> list[str]:
    return [
        line["table"],
        f"{line['seconds']:.1f}",
        number(line["rows_applied"]),
        *(_change(line, name) for name in _SIZES),
    ]


def _change(line: Mapping[str, Any], name: str) -> str:
    shown = size if name == "bytes" else number
    before, after = line[f"{name}_before"], line[f"{name}_after"]
    return shown(after) if before == after else f"{shown(before)} -> {shown(after)}"


def _total(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    summed = ["seconds", "rows_applied"]
    summed += [f"{name}_{when}" for name in _SIZES for when in ("before", "after")]
    return {"table": "total", **{name: sum(each[name] for each in tables) for name in summed}}


def _job_total(tables: Sequence[Mapping[str, Any]]) -> str:
    total = _total(tables)
    failed = sum(1 for each in tables if each["error"])
    result = f"; {counted(failed, 'table')} failed" if failed else ""
    changes = [
        f"{_change(total, name)}{'' if name == 'bytes' else f' {name}'}"
        for name in _SIZES
        if total[f"{name}_before"] != total[f"{name}_after"]
    ]
    if total["rows_applied"]:
        changes.insert(0, f"{counted(total['rows_applied'], 'row')} applied")
    return (
        f"{counted(len(tables), 'table')} in {total['seconds']:.1f} s:"
        f" {', '.join(changes) or 'nothing to change'}{result}"
    )
