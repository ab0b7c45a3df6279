"""Relations of the source that the lake was built on, and how today's differ from them.

The stream of changes does not contain that a partition with rows was attached or detached, that a
table was dropped, renamed, created again or rewritten, that a column was replaced by another of its
name, that a label of an enum was renamed, or that the key moved to other columns. A record of each
table, taken when the lake read it, makes these visible (decision 33).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from cdclake.plan import Table
from cdclake.postgres.admission import check_columns, check_snapshot
from cdclake.postgres.catalog import Relation, SourceTable, TableId
from cdclake.postgres.key_identity import check_identity
from cdclake.postgres.prepare import PublicationState
from cdclake.postgres.quoting import identifier, qualified
from cdclake.postgres.relation_record import Partition, RelationRecord, key_columns
from cdclake.postgres.source_names import can_be_read_again, rereading_remedy
from cdclake.postgres.type_casts import changes_values
from cdclake.postgres.type_lookup import check_type_lookup

Kind = Literal[
    "missing",
    "renamed",
    "recreated",
    "unpublished",
    "unreadable",
    "attached",
    "unlogged",
    "detached",
    "key",
    "replaced",
    "relabelled",
    "converted",
    "rewritten",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationChange:
    """Difference between a relation and its record, and the remedy."""

    kind: Kind
    message: str
    remedy: str
    resync: bool = False  # reading the table again repairs it
    statements: str = ""  # SQL for the source that comes before anything else

    def to_json(self) -> dict[str, Any]:
        """Return the object that `status` and `up` show."""
        return {"kind": self.kind, "message": self.message, "remedy": self.remedy}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """Source as it is now."""

    tables: Mapping[TableId, SourceTable]
    names: Mapping[int, TableId]  # of every relation, by oid
    alike: Mapping[TableId, tuple[TableId, ...]]  # missing tables: others with the same columns
    loaded: frozenset[int]  # partitions that were created with rows, then attached
    publication: PublicationState
    role: str  # the connector's
    sees_all_rows: bool  # row-level security does not filter the role
    version: int
    streams: bool  # the connector reads the slot: its snapshot is complete

    def compare(self, table: Table, record: RelationRecord | None) -> Iterator[RelationChange]:
        """Yield the differences of one table; without a record only those that need none."""
        for change in self._differences(table, record):
            if change.resync and not can_be_read_again(table):
                first = f"{change.statements} then " if change.statements else ""
                change = replace(change, remedy=first + rereading_remedy(table), resync=False)
            yield change

    def _differences(self, table: Table, record: RelationRecord | None) -> Iterator[RelationChange]:
        found = self.tables.get((table.schema, table.table))
        if found is None:
            yield self._missing(table, record)
        elif record is not None and found.oid != record.oid:
            yield RelationChange(
                kind="recreated",
                message="the table was dropped and created again, and rows of the new one may be"
                " missing",
                remedy="run `cdclake up`, which publishes it and reads it again",
                resync=True,
            )
        else:
            yield from self._changed(table, record, found)

    def _changed(
        self, table: Table, record: RelationRecord | None, found: SourceTable
    ) -> Iterator[RelationChange]:
        logged = replace(found, leaves=tuple(leaf for leaf in found.leaves if not leaf.unlogged))
        for refusal in check_snapshot(logged, self.role, sees_all_rows=self.sees_all_rows):
            yield RelationChange(kind="unreadable", message=refusal.message, remedy=refusal.remedy)
        omission = self.publication.omission(table)
        if omission is not None or (record is not None and record.omitted):
            yield RelationChange(
                kind="unpublished",
                message=omission or "the publication omitted changes of it before it was repaired",
                remedy="run `cdclake up`, which publishes it and reads it again",
                resync=True,
            )
        yield from _unlogged(record, found)
        if record is not None:
            yield from _partitions(record, found, self.loaded)
            yield from _replaced(table, record, found)
            yield from _relabelled(table, record, found)
            yield from _rewritten(table, record, found)
        yield from _mistaken(table, found)
        if not check_columns(table, found):
            for refusal in check_identity(table, found, False, self.version):
                yield RelationChange(
                    kind="key",
                    message=refusal.message + _moved(record, found),
                    remedy=f"{refusal.remedy}; then {rereading_remedy(table)}",
                    statements=refusal.remedy,
                )

    def _missing(self, table: Table, record: RelationRecord | None) -> RelationChange:
        now = self.names.get(record.oid) if record is not None else None
        if now is not None:
            return RelationChange(
                kind="renamed",
                message=f"the table was renamed to {'.'.join(now)}: its changes no longer reach the"
                " lake",
                remedy=f"run in the source: {_name_again(now, table)} then run `cdclake up`; or"
                f" declare {'.'.join(now)} under another `name:` and remove {table.source}",
                statements=f"run in the source: {_name_again(now, table)}",
            )
        alike = self.alike.get((table.schema, table.table), ())
        hint = "".join(f"; {'.'.join(other)} has the same columns" for other in alike[:3])
        return RelationChange(
            kind="missing",
            message=f"the source has no table {table.source}{hint}",
            remedy=f"create it and run `cdclake up`, or remove {table.source} from the file and run"
            " `cdclake up FILE`: its rows remain in the lake",
        )


def _mistaken(table: Table, found: SourceTable) -> Iterator[RelationChange]:
    """Yield columns whose values may be NULL since, or after, the connector's next start."""
    for column in table.columns:
        if (refusal := check_type_lookup(column, table, found)) is not None:
            yield RelationChange(
                kind="unreadable",
                message=refusal.message,
                remedy=f"{refusal.remedy}; then run `cdclake down --keep-slot` and `cdclake up`,"
                f" which start the connector again, and {rereading_remedy(table)}",
                statements=refusal.remedy,
            )


def _name_again(now: TableId, table: Table) -> str:
    """Return the statements that undo a rename."""
    statements, (schema, name) = [], now
    if name != table.table:
        new = identifier(table.table)
        statements.append(f"ALTER TABLE {qualified(schema, name)} RENAME TO {new};")
    if schema != table.schema:
        new = identifier(table.schema)
        statements.append(f"ALTER TABLE {qualified(schema, table.table)} SET SCHEMA {new};")
    return " ".join(statements)


def _unlogged(record: RelationRecord | None, found: SourceTable) -> Iterator[RelationChange]:
    """Yield partitions that are unlogged, or were so at a comparison.

    PostgreSQL refuses that only for a table that is in the publication itself.
    """
    recorded = {} if record is None else {part.oid: part for part in record.partitions.values()}
    unlogged = [
        leaf
        for leaf in found.leaves
        if leaf.unlogged or (leaf.oid in recorded and recorded[leaf.oid].unlogged)
    ]
    statements = " ".join(
        f"ALTER TABLE {qualified(*leaf.id)} SET LOGGED;" for leaf in unlogged if leaf.unlogged
    )
    first = f"run in the source: {statements}" if statements else ""
    remedy = "run `cdclake up`, which reads the table again"
    if unlogged:
        yield RelationChange(
            kind="unlogged",
            message=f"partition {', '.join(leaf.source for leaf in unlogged)} is or was UNLOGGED:"
            " rows that were written to it meanwhile are in no event",
            remedy=f"{first} then {remedy}" if first else remedy,
            resync=True,
            statements=first,
        )


def began_empty(leaf: Relation, loaded: Collection[int]) -> bool:
    """Check whether the partition was created in its place, so that all its rows have events.

    PostgreSQL gives a new table its oid as file. A later rewrite may be that of SET LOGGED.
    """
    is_new = leaf.created_attached and leaf.file == leaf.oid and not leaf.unlogged
    return is_new and leaf.oid not in loaded


def _was_attached(leaf: Relation, part: Partition | None, loaded: Collection[int]) -> bool:
    if part is None:
        return not leaf.unlogged and not began_empty(leaf, loaded)
    return sorted(part.joined.split()) != sorted(leaf.joined.split())


def _partitions(
    record: RelationRecord, found: SourceTable, loaded: frozenset[int]
) -> Iterator[RelationChange]:
    """Yield attached and detached partitions; one that was created empty in its place is neither.

    A partition that was detached and attached again may have changed in between.
    """
    known = {part.oid: part for part in record.partitions.values()}
    now = {leaf.oid for leaf in found.leaves}
    attached = [
        leaf.source for leaf in found.leaves if _was_attached(leaf, known.get(leaf.oid), loaded)
    ]
    detached = [name for name, part in record.partitions.items() if part.oid not in now]
    if attached:
        yield RelationChange(
            kind="attached",
            message=f"partition {', '.join(attached)} was attached, or rewritten after its"
            " creation: rows that it had before are in no event",
            remedy="run `cdclake up`, which reads the table again",
            resync=True,
        )
    if detached:
        yield RelationChange(
            kind="detached",
            message=f"partition {', '.join(detached)} was detached or dropped: its rows are still"
            " in the lake",
            remedy="run `cdclake up`, which reads the table again and deletes them",
            resync=True,
        )


def _replaced(table: Table, record: RelationRecord, found: SourceTable) -> Iterator[RelationChange]:
    """Yield columns that were dropped and added again: PostgreSQL gives each a new number.

    If that happens between two events of the table, they have the same form.
    """
    replaced = [
        column.source
        for column in table.columns
        if (now := found.by_name.get(column.source)) is not None
        and record.numbers.get(column.source, now.number) != now.number
    ]
    if replaced:
        yield RelationChange(
            kind="replaced",
            message=f"column {', '.join(replaced)} was dropped and added again: the values that it"
            " then had are in no event, and the lake has the old ones",
            remedy="run `cdclake up`, which reads the table again",
            resync=True,
        )


def _relabelled(
    table: Table, record: RelationRecord, found: SourceTable
) -> Iterator[RelationChange]:
    """Yield enums with renamed labels: PostgreSQL stores the label's oid, so no row changes."""
    renamed = {
        oid: f"{record.labels[oid]!r} to {label!r}"
        for column in table.columns
        if (now := found.by_name.get(column.source)) is not None
        for oid, label in now.labels.items()
        if record.labels.get(oid, label) != label
    }
    if renamed:
        yield RelationChange(
            kind="relabelled",
            message=f"a label of an enum was renamed ({', '.join(renamed.values())}): the rows that"
            " have it are in no event, and the lake has the old label",
            remedy="run `cdclake up`, which reads the table again",
            resync=True,
        )


def _rewritten(
    table: Table, record: RelationRecord, found: SourceTable
) -> Iterator[RelationChange]:
    """Yield a rewrite that may have changed rows without an event.

    An older snapshot sees no row of a rewritten table, so any rewrite counts while the first one is
    taken. Later VACUUM FULL, CLUSTER and TRUNCATE replace the file too; only an ALTER TABLE that
    changed a type has new values: those that its USING computed, or PostgreSQL by its own cast.
    """
    files = {part.oid: part.file for part in record.partitions.values()} | {record.oid: record.file}
    if all(files.get(each.oid, each.file) == each.file for each in (found, *found.leaves)):
        return
    if not record.settled:
        yield RelationChange(
            kind="rewritten",
            message="the table was rewritten while the lake read it for the first time: its rows"
            " may be missing",
            remedy=rereading_remedy(table),
            resync=True,
        )
    else:
        yield from _retyped(table, record, found)


def _retyped(table: Table, record: RelationRecord, found: SourceTable) -> Iterator[RelationChange]:
    """Yield the new types of a rewritten table, with the columns whose values they changed."""
    types = {column.name: column.shown for column in found.columns}
    changed = [n for n, kind in record.columns.items() if types.get(n, kind) != kind]
    flowing = {column.source: column.name in table.key for column in table.columns}
    cast = [
        column.name
        for column in found.columns
        if column.name in changed and column.name in flowing
        if changes_values(record.columns[column.name], column.resolved, in_key=flowing[column.name])
    ]
    if cast:
        yield RelationChange(
            kind="converted",
            message=f"PostgreSQL converted the values of {', '.join(cast)} to the new type: the"
            " rounded, cut, padded or normalized ones are in no event, and the lake has the old"
            " ones",
            remedy="run `cdclake up`, which reads the table again",
            resync=True,
        )
    elif changed:
        yield RelationChange(
            kind="rewritten",
            message=f"the table was rewritten for the new type of {', '.join(changed)}: values that"
            " the statement computed (USING) are in no event",
            remedy=f"if it computed any, or to clear this message, {rereading_remedy(table)}",
        )


def _moved(record: RelationRecord | None, found: SourceTable) -> str:
    key = key_columns(found)
    if record is None or record.key == key:
        return ""
    before, now = (", ".join(columns) or "none" for columns in (record.key, key))
    return f"; its primary key moved from ({before}) to ({now})"
