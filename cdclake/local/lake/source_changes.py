"""Schema drift: source columns that differ from the pipeline file, each with the file's line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cdclake.config.column_lines import Lines
from cdclake.iceberg.widening import advise_rebuild, is_widening
from cdclake.jobs.runtime.source import source_tables
from cdclake.local.lake.lake import LocalLake
from cdclake.plan import Plan, Table
from cdclake.postgres.admission import check_column, check_validated
from cdclake.postgres.catalog import SourceTable
from cdclake.postgres.file_lines import retyped_line
from cdclake.postgres.new_columns import lines_to_write, types_to_declare
from cdclake.postgres.refusal import Refusal
from cdclake.postgres.source_names import check_rereading

_OUTCOMES = {
    "ignore": ", so it does not reach the lake",
    "declare": ", so it does not reach the lake yet",
    "stop": ", so its table stops",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChange:
    """Column that differs from its declaration, and what to write instead."""

    column: str
    line: int | None  # of the pipeline file; None if the file cannot be read
    message: str
    remedy: str
    ignored: bool = False  # the file's policy is to leave the column out

    def to_json(self) -> dict[str, Any]:
        """Return the object that `status` shows."""
        return asdict(self)


def source_changes(lake: LocalLake, lines: Lines) -> dict[str, list[SourceChange]]:
    """Return the differences by table name; raise InputError if the source does not answer."""
    actual = source_tables(lake.dsn, lake.plan)
    return {
        table.name: [
            *widened_changes(lake.plan, table, lines),
            *(
                SourceChange(
                    column=column,
                    line=lines.of(table, column),
                    message=message,
                    remedy=remedy,
                    ignored=is_ignored(table, column, lake.plan.new_columns),
                )
                for found in [actual.get((table.schema, table.table))]
                if found is not None
                for column, message, remedy in compare_columns(table, found, lake.plan.new_columns)
            ),
        ]
        for table in lake.plan.tables
    }


def widened_changes(plan: Plan, table: Table, lines: Lines) -> Iterator[SourceChange]:
    """Yield the columns that the lake has widened after the source, and the file has not yet."""
    for column in table.columns:
        declared = lines.type_of(table, column.source)
        if declared is not None and is_widening(declared, column.column_type):
            also = advise_rebuild(plan, table, [column.name]) or "nothing else has to be done"
            yield SourceChange(
                column=column.source,
                line=lines.of(table, column.source),
                message=f"column {column.source!r} was widened from {declared} to {column.type},"
                " as in the source",
                remedy=f"write `{retyped_line(column, column.column_type)}`; {also}",
            )


def compare_columns(
    table: Table, actual: SourceTable, policy: str = "ignore"
) -> Iterator[tuple[str, str, str]]:
    """Yield (column, message, remedy) of each column that differs from its declaration.

    `policy` is that for undeclared columns.
    """
    for column in table.columns:
        refusal = check_column(column, table, actual) or check_validated(column, actual)
        if refusal is not None:
            yield column.source, refusal.message, refusal.remedy
    unread = check_rereading(table.schema, table.table)
    policy = "ignore" if unread and policy == "declare" else policy  # `up` cannot read its values
    for name, kind in types_to_declare(table, actual).items():
        yield (
            name,
            f"column {name!r} is not declared{_OUTCOMES[policy]}",
            _remedy(name, kind, policy, unread),
        )


def is_ignored(table: Table, column: str, policy: str) -> bool:
    """Return True for a column that the file does not declare, under the policy to ignore it."""
    return policy == "ignore" and all(column != declared.source for declared in table.columns)


def _remedy(column: str, kind: str | None, policy: str, unread: Sequence[Refusal]) -> str:
    if unread:
        return f"{lines_to_write(column, None)}; or {unread[0].remedy} ({unread[0].message})"
    lines = lines_to_write(column, kind)
    if policy == "declare" and kind is not None:
        return f"run `cdclake up`, which writes it into the file; or {lines}"
    return lines
