"""The source's relations as `up` and `status` compare them with what the lake was built on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cdclake.jobs.operations.source_relations import (
    changed_relations,
    compare_and_record,
    keep_records,
    load_records,
    mark_missed,
)
from cdclake.local.lake.lake import LocalLake
from cdclake.plan import Table
from cdclake.postgres.relations import RelationChange, SourceState


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRelations:
    """Source before `up` changes it, and the differences of the tables that the lake has."""

    source: SourceState
    changes: Mapping[str, list[RelationChange]]  # by `schema.table`
    being_read: frozenset[str] = frozenset()  # by an incremental snapshot, which must end first

    @property
    def to_resync(self) -> frozenset[str]:
        """Tables (`schema.table`) that have to be read again."""
        found = (t for t, changes in self.changes.items() if any(c.resync for c in changes))
        return frozenset(found) - self.being_read

    def to_json(self) -> list[dict[str, Any]]:
        """Return the differences that `up` found, with what it did about each."""
        return [
            {
                "source": table,
                **change.to_json(),
                "did": "resync" if change.resync and table in self.to_resync else None,
            }
            for table, found in self.changes.items()
            for change in found
        ]


def check_relations(lake: LocalLake, tables: Iterable[Table]) -> CheckedRelations:
    """Compare these tables with the lake's records."""
    records = load_records(lake.control, lake.plan) if lake.state.epoch else {}
    source, changes = changed_relations(lake.dsn, lake.plan, records, tables)
    return CheckedRelations(source=source, changes=changes)


def relation_changes(lake: LocalLake) -> dict[str, list[RelationChange]]:
    """Return the differences of all tables by lake name, and record what is new in the tables.

    Raises:
        InputError: if the source does not answer
    """
    changes: Mapping[str, list[RelationChange]]
    if lake.state.epoch:
        changes = compare_and_record(lake.control, lake.dsn, lake.plan)
    else:
        changes = check_relations(lake, lake.plan.tables).changes
    return {table.name: list(changes[table.source]) for table in lake.plan.tables}


def mark_missed_changes(lake: LocalLake, checked: CheckedRelations) -> None:
    """Record what the publication omits before `up` repairs it, and partitions that it refuses.

    Nothing else shows them if this `up` dies or fails and the next one finds them repaired.
    """
    found = checked.changes.items()
    omitted = {table for table, each in found if any(c.kind == "unpublished" for c in each)}
    if omitted or any(c.kind == "unlogged" for _, each in found for c in each):
        mark_missed(lake.control, checked.source, lake.plan, omitted)


def keep_what_is_read(lake: LocalLake, checked: CheckedRelations, *, first: bool) -> None:
    """Record the tables that the connector reads now, as they were before it began.

    With `first` it reads every table in one snapshot, which does not see the rows of a table that
    is rewritten meanwhile: `settle_relations` looks for those. An incremental snapshot sees them.
    """
    read = {each.source for each in checked.source.tables.values()}
    if not first:
        read = (read - load_records(lake.control, lake.plan).keys()) | checked.to_resync
    keep_records(lake.control, checked.source, lake.plan, read=read, settled=not first)


def settle_relations(lake: LocalLake) -> CheckedRelations:
    """Compare again when the connector streams, and record the tables that have not changed."""
    checked = check_relations(lake, lake.plan.tables)
    keep_records(lake.control, checked.source, lake.plan, read=(), settled=True)
    return checked
