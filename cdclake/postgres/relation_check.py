"""Comparison of the source's relations with the lake's records, over a given session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cdclake.plan import Plan, Table
from cdclake.postgres import queries
from cdclake.postgres.catalog import SourceTable, TableId
from cdclake.postgres.prepare import PublicationState
from cdclake.postgres.quoting import qualified
from cdclake.postgres.relation_record import RelationRecord
from cdclake.postgres.relations import RelationChange, SourceState, began_empty
from cdclake.postgres.session import Session
from cdclake.postgres.source import read_catalog, read_publication, read_server

Records = Mapping[str, RelationRecord]  # by `schema.table`


def read_source(connection: Session, plan: Plan, records: Records) -> SourceState:
    """Read what the comparison needs from the source."""
    wanted = {(table.schema, table.table) for table in plan.tables}
    tables = {found.id: found for found in read_catalog(connection, tables=wanted)}
    server = read_server(connection, plan.source_object)
    return SourceState(
        tables=tables,
        names={row[0]: (row[1], row[2]) for row in connection.execute(queries.RELATIONS)},
        alike=_alike(connection, plan, tables, records),
        loaded=frozenset(_loaded(connection, tables.values(), records)),
        publication=read_publication(connection, plan.source_object),
        role=plan.source_object,
        sees_all_rows=server.role_sees_all_rows,
        version=server.version,
        streams=server.slot_active,
    )


def compare_relations(
    source: SourceState, tables: Iterable[Table], records: Records
) -> dict[str, list[RelationChange]]:
    """Return the differences of each table, by `schema.table`."""
    return {t.source: list(source.compare(t, records.get(t.source))) for t in tables}


def merged_records(
    source: SourceState, tables: Iterable[Table], records: Records
) -> dict[str, RelationRecord]:
    """Return the records without those of other tables, and with those of new tables.

    A table that is as recorded gets a new record once the connector streams. Any other table keeps
    its record until it is read again; only labels, columns and empty partitions that were added are
    recorded, so that a later change of them is noticed, and the marks of omitted changes and
    unlogged partitions. A new table has no record before it is published.
    """
    merged, tables = {}, tuple(tables)
    for table in tables:
        record, found = records.get(table.source), source.tables.get((table.schema, table.table))
        if record is None and source.publication.omission(table) is not None:
            continue
        if found is not None:
            now = RelationRecord.of(table, found, settled=source.streams)
            if record is None or (source.streams and not any(source.compare(table, record))):
                record = now
            else:
                empty = [leaf.source for leaf in found.leaves if began_empty(leaf, source.loaded)]
                record = record.with_additions(now, empty).with_unlogged(found.leaves)
        if record is not None:
            merged[table.source] = record
    return with_omissions(source.publication, tables, merged)


def with_omissions(
    publication: PublicationState, tables: Iterable[Table], records: Records
) -> dict[str, RelationRecord]:
    """Return the records, marked for each of these tables whose changes the publication omits.

    The mark is kept until the table is read again: a repaired publication shows no omission.
    """
    omitted = {table.source for table in tables if publication.omission(table) is not None}
    return {
        source: replace(record, omitted=True) if source in omitted else record
        for source, record in records.items()
    }


def parse_records(content: Mapping[str, Any], tables: Iterable[Table]) -> dict[str, RelationRecord]:
    """Parse the control object, without records of tables that have another lake name now.

    Such a table is new to the lake, so it gets a new record.
    """
    names = {table.source: table.name for table in tables}
    records = {name: RelationRecord.from_json(each) for name, each in content["tables"].items()}
    return {
        source: record
        for source, record in records.items()
        if record.lake_name in ("", names.get(source, record.lake_name))
    }


def records_content(records: Records) -> dict[str, Any]:
    """Return the control object's content."""
    return {"tables": {name: record.to_json() for name, record in records.items()}}


def _alike(
    connection: Session, plan: Plan, tables: Mapping[TableId, SourceTable], records: Records
) -> dict[TableId, tuple[TableId, ...]]:
    """Return, for each missing table, undeclared tables with the columns that it had."""
    declared = {(table.schema, table.table): table for table in plan.tables}
    missing = {each: table for each, table in declared.items() if each not in tables}
    if not missing:
        return {}
    others = [t for t in read_catalog(connection) if t.id not in declared and t.kind in "rp"]
    found = {}
    for each, table in missing.items():
        record = records.get(table.source)
        columns = set(record.columns if record else [column.source for column in table.columns])
        found[each] = tuple(other.id for other in others if columns == set(other.by_name))
    return found


def _loaded(connection: Session, tables: Iterable[SourceTable], records: Records) -> Iterable[int]:
    """Yield new partitions whose transaction may have filled them before it attached them."""
    for table in tables:
        record = records.get(table.source)
        if record is None:
            continue
        known = {part.oid for part in record.partitions.values()}
        new = [leaf for leaf in table.leaves if leaf.oid not in known and leaf.created_attached]
        if not new:
            continue
        query = queries.LOADED_BEFORE.format(table=qualified(table.schema, table.table))
        joined = sorted({xid for leaf in new for xid in leaf.joined.split()})
        rows = connection.execute(query, ([leaf.oid for leaf in new], joined)).fetchall()
        yield from (row[0] for row in rows)
