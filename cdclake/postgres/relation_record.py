"""Record of a source's table as it was when the lake read it; `relations.py` compares it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cdclake.control_objects import known_fields
from cdclake.plan import Table
from cdclake.postgres.catalog import Relation, SourceTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Leaf partition as it was when the lake read its table."""

    oid: int
    file: int
    joined: str
    unlogged: bool = False  # at a comparison since then, also if it no longer is


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRecord:
    """Relation as it was when the lake read it; `settled` once its first snapshot was complete."""

    oid: int
    file: int
    key: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)  # types by name
    # Numbers by name. Records of earlier versions have none.
    numbers: Mapping[str, int] = field(default_factory=dict)
    # Of its enums, by oid. Records of earlier versions have none.
    labels: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, Partition] = field(default_factory=dict)  # by `schema.table`
    settled: bool = True
    lake_name: str = ""  # of its table in the lake. Records of earlier versions have none.
    omitted: bool = False  # the publication has omitted changes since, also if it no longer does

    @staticmethod
    def of(table: Table, actual: SourceTable, *, settled: bool) -> RelationRecord:
        """Return the record of a table as it is now."""
        return RelationRecord(
            oid=actual.oid,
            file=actual.file,
            key=key_columns(actual),
            columns={column.name: column.shown for column in actual.columns},
            numbers={column.name: column.number for column in actual.columns},
            labels=_labels(actual),
            partitions={
                leaf.source: Partition(
                    oid=leaf.oid, file=leaf.file, joined=leaf.joined, unlogged=leaf.unlogged
                )
                for leaf in actual.leaves
            },
            settled=settled,
            lake_name=table.name,
        )

    def with_additions(self, now: RelationRecord, empty: Collection[str]) -> RelationRecord:
        """Return the record with the labels, columns and `empty` partitions that `now` adds."""
        known = {part.oid for part in self.partitions.values()}
        created = {
            name: part
            for name, part in now.partitions.items()
            if name in empty and part.oid not in known
        }
        return replace(
            self,
            columns={**now.columns, **self.columns},
            numbers={**now.numbers, **self.numbers},
            labels={**now.labels, **self.labels},
            partitions={**created, **self.partitions},
        )

    def with_unlogged(self, leaves: Iterable[Relation]) -> RelationRecord:
        """Return the record with a mark on each of its partitions that is unlogged now."""
        unlogged = {leaf.oid for leaf in leaves if leaf.unlogged}
        partitions = {
            name: replace(part, unlogged=True) if part.oid in unlogged else part
            for name, part in self.partitions.items()
        }
        return replace(self, partitions=partitions)

    def to_json(self) -> dict[str, Any]:
        """Return the record's part of the control object."""
        return {**asdict(self), "key": list(self.key)}

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> RelationRecord:
        """Parse the record's part of the control object."""
        partitions = content.get("partitions", {})
        return RelationRecord(
            oid=content["oid"],
            file=content["file"],
            key=tuple(content.get("key", ())),
            columns=content.get("columns", {}),
            numbers=content.get("numbers", {}),
            labels=content.get("labels", {}),
            partitions={
                name: Partition(**known_fields(Partition, part))
                for name, part in partitions.items()
            },
            settled=content.get("settled", True),
            lake_name=content.get("lake_name", ""),
            omitted=content.get("omitted", False),
        )


def key_columns(actual: SourceTable) -> tuple[str, ...]:
    """Return the columns of the primary key; none without one."""
    return actual.primary_key.columns if actual.primary_key is not None else ()


def _labels(actual: SourceTable) -> dict[str, str]:
    return {oid: label for each in actual.columns for oid, label in each.labels.items()}
