"""`cdclake snapshots`: the snapshots of a table, which `cdclake sql --at` can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclake.activity import step
from cdclake.cli.aligned import aligned, counted, number, size
from cdclake.cli.output import JsonOption, emit, say, say_all
from cdclake.cli.target import (
    EnvironmentOption,
    FileOption,
    Target,
    TargetOption,
    lake_reader_of,
)

if TYPE_CHECKING:
    from cdclake.jobs.reader.catalog import CatalogTable, TableSnapshot
    from cdclake.jobs.reader.duck import Reader

_NAMES = ("relation", "snapshot", "committed at", "operation", "rows", "files", "size", "tags")
_NUMBERS = ("rows", "files", "size")


def snapshots(
    table: Annotated[
        str, typer.Argument(help="The table, by its name in the lake or in the source.")
    ],
    target: TargetOption = Target.LOCAL,
    file: FileOption = None,
    environment: EnvironmentOption = None,
    json_output: JsonOption = False,
) -> None:
    """List the snapshots of a table's changelog and state, the oldest first.

    `cdclake sql --at` takes a snapshot's id or time. A tag `at-...` keeps the snapshot that was
    current when an hour ended. Rows of the state include those of deleted keys. JSON: `snapshots[]
    {relation, snapshot, committed_at, operation, rows, files, bytes, tags, current}`, and
    `schema_changes[] {relation, snapshot, committed_at, column, change}` between them.
    """
    with step("read the snapshots"), lake_reader_of(target, file, environment) as reader:
        answer = snapshots_answer(reader, table)
    emit(answer, json_output, lambda: _render(answer["snapshots"]))


def snapshots_answer(reader: Reader, table: str) -> dict[str, Any]:
    """Return the object of `snapshots --json`."""
    streamed = reader.plan.table(table)
    loaded = reader.load([streamed], quarantine=False)
    relations = [loaded[name] for name in (streamed.changes, streamed.name)]
    return {
        "ok": True,
        "table": streamed.name,
        "snapshots": [entry for relation in relations for entry in _snapshots(relation)],
        "schema_changes": [entry for relation in relations for entry in _schema_changes(relation)],
    }


def _schema_changes(table: CatalogTable) -> list[dict[str, Any]]:
    from cdclake.jobs.reader.schema_history import schema_history

    return [
        {
            "relation": table.name,
            "snapshot": found.snapshot and found.snapshot.id,
            "committed_at": found.snapshot and _time(found.snapshot),
            "column": found.column,
            "change": found.change,
        }
        for found in schema_history(table)
    ]


def _time(snapshot: TableSnapshot) -> str:
    return snapshot.committed_at.isoformat(timespec="milliseconds")


def _snapshots(table: CatalogTable) -> list[dict[str, Any]]:
    return [
        {
            "relation": table.name,
            "snapshot": snapshot.id,
            "committed_at": _time(snapshot),
            "operation": snapshot.summary.get("operation"),
            "rows": snapshot.live_rows,
            "files": snapshot.data_files,
            "bytes": snapshot.bytes,
            "tags": sorted(tag for tag, kept in table.tags.items() if kept == snapshot.id),
            "current": snapshot is table.current,
        }
        for snapshot in sorted(table.snapshots.values(), key=lambda each: each.committed_ms)
    ]


def _render(listed: list[dict[str, Any]]) -> None:
    rows = [
        [
            entry["relation"],
            str(entry["snapshot"]),
            entry["committed_at"].replace("+00:00", "Z"),
            entry["operation"] or "",
            number(entry["rows"]),
            number(entry["files"]),
            size(entry["bytes"]),
            ", ".join([*(["current"] if entry["current"] else []), *entry["tags"]]),
        ]
        for entry in listed
    ]
    say_all(aligned(_NAMES, rows, _NUMBERS))
    say(counted(len(listed), "snapshot"))
