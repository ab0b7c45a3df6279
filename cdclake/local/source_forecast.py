"""Facts of the source about a pipeline file that is not applied yet; they are only read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cdclake.jobs.runtime.source import Connection, connect
from cdclake.local.lake.declared_columns import columns_to_declare
from cdclake.local.lake.declared_tables import NewTables, find_new_tables
from cdclake.plan import Plan
from cdclake.plan_diff import PlanDiff
from cdclake.plan_effects import READ, SourceFindings
from cdclake.postgres.refusal import Refusal, as_warnings
from cdclake.postgres.server import ServerState
from cdclake.postgres.source import read_catalog, read_publication, read_server, renamed_early
from cdclake.postgres.source_names import can_be_read_again
from cdclake.postgres.source_warnings import source_warnings
from cdclake.postgres.table_sizes import TableSize, read_sizes

NOT_ASKED = (
    "the source was not asked: rows, bytes, new tables, a lost slot and relations that changed are"
    " not known"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceForecast:
    """Answers of the source; the defaults are those of a source that was not asked."""

    was_asked: bool = False
    sizes: Mapping[str, TableSize] = field(default_factory=dict)  # by `schema.table`
    new: NewTables = field(default_factory=NewTables)
    renamed: frozenset[str] = frozenset()
    unpublished: frozenset[str] = frozenset()
    declared: Mapping[str, str] = field(default_factory=dict)  # columns that `up` adds to the file
    server: ServerState | None = None
    warnings: Sequence[Refusal] = ()

    def completed(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of `plan` with sizes and new tables, or that they are not known."""
        tables = [
            {**table, "rows": size.rows if size else None, "bytes": size.bytes if size else None}
            for table in answer["tables"]
            for size in [self.sizes.get(table["source"])]
        ]
        return {
            **answer,
            "tables": tables,
            "reads": _total([table for table in tables if table["effect"] in READ]),
            "new_tables": [
                {"source": each.source.source, "reason": each.reason, "remedy": each.remedy}
                for each in self.new.matching
            ],
            "undeclared_tables": list(self.new.others),
            "unknown": [*answer["unknown"], *([] if self.was_asked else [NOT_ASKED])],
            "warnings": [*answer.get("warnings", ()), *as_warnings(self.warnings)],
        }


def _total(read: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums; None where one of the tables has no figure."""
    sums: dict[str, Any] = {"tables": len(read)}
    for name in ("rows", "bytes"):
        figures = [table[name] for table in read]
        sums[name] = None if None in figures else sum(figures)
    return sums


def ask_source(
    dsn: str | None,
    plan: Plan,
    patterns: Sequence[str],
    *,
    embedded: bool,
    is_first: bool = False,
) -> SourceForecast:
    """Read the catalog and the statistics of the source; without a DSN ask nothing.

    `embedded`: the database belongs to the lake.
    `is_first`: the lake has not streamed yet.

    Raises:
        InputError: if the source does not answer
    """
    if dsn is None or not plan.all_tables:
        return SourceForecast()
    with connect(dsn) as connection:
        found = _asked(connection, plan, is_first)
        warnings = source_warnings(connection, plan, embedded=embedded) if plan.tables else ()
    new = find_new_tables(dsn, plan, patterns)
    return SourceForecast(**found, new=new, warnings=warnings, was_asked=True)


def _asked(connection: Connection, plan: Plan, is_first: bool) -> dict[str, Any]:
    wanted = {(table.schema, table.table) for table in plan.tables}
    actual = {table.id: table for table in read_catalog(connection, tables=wanted)}
    publication = read_publication(connection, plan.source_object)
    is_declaring = plan.new_columns == "declare"
    new_columns = columns_to_declare(plan, actual, is_first=is_first)[0] if is_declaring else {}
    return {
        "sizes": read_sizes(connection, plan.all_tables),
        "server": read_server(connection, plan.source_object) if plan.tables else None,
        "renamed": renamed_early(plan.tables, actual),
        "declared": {".".join(table): ", ".join(types) for table, types in new_columns.items()},
        "unpublished": frozenset(
            t.source for t in plan.tables if can_be_read_again(t) and publication.lacks(t)
        ),
    }


def adapted(
    change: PlanDiff, source: SourceForecast, *, streamed: bool, to_resync: frozenset[str]
) -> tuple[PlanDiff, SourceFindings]:
    """Return the difference and the reasons to read again that `up` would find.

    `streamed`: the lake has streamed before; `to_resync`: tables whose relations have changed.
    """
    reasons = {table: f"`up` declares new columns: {c}" for table, c in source.declared.items()}
    reasons |= dict.fromkeys(source.unpublished, "the publication omits changes of it")
    reasons |= dict.fromkeys(to_resync, "its relation in the source has changed")
    change = change.adapted(source.renamed, reasons)
    epoch = _epoch_reason(source.server) if streamed and source.server else ""
    if epoch:
        change = change.all_snapshotted()
    return change, SourceFindings(new_epoch=epoch, read_again=reasons)


def _epoch_reason(server: ServerState) -> str:
    if not server.slot_exists:
        return "the slot does not exist in the source"
    return f"the slot {server.slot_loss}" if server.slot_loss else ""
