"""Records of the source's relations, as one control object; the stream does not use it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from cdclake import naming
from cdclake.errors import ComponentFailed
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.runtime.source import connect
from cdclake.plan import Plan, Table
from cdclake.postgres import admission
from cdclake.postgres.refusal import refused
from cdclake.postgres.relation_check import (
    Records,
    compare_relations,
    merged_records,
    parse_records,
    read_source,
    records_content,
)
from cdclake.postgres.relation_record import RelationRecord
from cdclake.postgres.relations import RelationChange, SourceState
from cdclake.postgres.source import read_catalog, read_server
from cdclake.postgres.source_names import check_rereading

_MAX_ATTEMPTS = 10  # each attempt after the first follows a write of another command


def load_records(control: ObjectStore, plan: Plan) -> dict[str, RelationRecord]:
    """Return the records by `schema.table`; none if the lake is of an earlier version."""
    stored = control.read(naming.RELATIONS)
    return parse_records(stored.content, plan.tables) if stored else {}


def changed_relations(
    dsn: str, plan: Plan, records: Records, tables: Iterable[Table]
) -> tuple[SourceState, dict[str, list[RelationChange]]]:
    """Read the source, and compare these tables; raise InputError if it does not answer."""
    source = read_relations(dsn, plan, records)
    return source, compare_relations(source, tables, records)


def read_relations(dsn: str, plan: Plan, records: Records) -> SourceState:
    """Read what the comparison needs; raise InputError if the source does not answer."""
    with connect(dsn) as connection:
        return read_source(connection, plan, records)


def compare_and_record(
    control: ObjectStore, dsn: str, plan: Plan
) -> dict[str, list[RelationChange]]:
    """Compare all tables, and record what is new in them; InputError if there is no answer.

    A label or a partition that is not recorded can be renamed or detached without a difference.
    Only `up` adds and removes records: it may have written those of a plan that follows this one.
    """
    stored = control.read(naming.RELATIONS)
    records = parse_records(stored.content, plan.tables) if stored else {}
    source, changes = changed_relations(dsn, plan, records, plan.tables)
    if stored is None:
        return changes
    recorded = [table for table in plan.tables if table.source in records]
    every = parse_records(stored.content, ())
    merged = {**every, **merged_records(source, recorded, records)}
    if merged != every:
        # Refused if a command that reads tables again has recorded them meanwhile.
        control.write_if(naming.RELATIONS, records_content(merged), stored.etag)
    return changes


def check_snapshot(dsn: str, plan: Plan, table: Table) -> None:
    """Raise InputError if a new snapshot of the table would not have exactly its rows.

    The rows that it lacks would pass for stale ones, which a resync deletes from the lake.
    """
    with connect(dsn) as connection:
        relations = read_catalog(connection, tables=[(table.schema, table.table)])
        sees_all_rows = read_server(connection, plan.source_object).role_sees_all_rows
    refusals = [
        refusal
        for actual in relations
        for refusal in admission.check_snapshot(
            actual, plan.source_object, sees_all_rows=sees_all_rows
        )
    ]
    if refusals := refusals or check_rereading(table.schema, table.table):
        raise refused(refusals)


def keep_records(
    control: ObjectStore, source: SourceState, plan: Plan, *, read: Collection[str], settled: bool
) -> None:
    """Store new records of the tables that are `read` (`schema.table`), and keep the other tables'.

    Those of tables that left the plan are removed: only `up` calls it. Call it when the reading is
    certain: a change that is recorded is no longer reported.
    """

    def changed(records: Records) -> Records:
        return _with_read(source, plan, records, read=read, settled=settled)

    _change_records(control, plan, changed, keeps_others=False)


def mark_missed(
    control: ObjectStore, source: SourceState, plan: Plan, omitted: Collection[str]
) -> None:
    """Mark the records of the tables `omitted` (`schema.table`), and of unlogged partitions.

    The publication omits changes of these tables. Call it before that is repaired: the records keep
    the marks until the tables are read.
    """

    def marked(records: Records) -> Records:
        changed = dict(records)
        for table in plan.tables:
            found = source.tables.get((table.schema, table.table))
            if found is None:
                continue
            record = records.get(table.source)
            if table.source in omitted:
                record = record or RelationRecord.of(table, found, settled=source.streams)
                record = replace(record, omitted=True)
            if record is not None:
                changed[table.source] = record.with_unlogged(found.leaves)
        return changed

    _change_records(control, plan, marked, keeps_others=True)


def keep_resynced(control: ObjectStore, source: SourceState, plan: Plan, table: Table) -> None:
    """Record the table as it was before its resync, since the connector reads all of it.

    A change since then is reported: the resync may have missed it.
    """

    def changed(records: Records) -> Records:
        return _with_read(source, plan, records, read=[table.source], settled=True)

    _change_records(control, plan, changed, keeps_others=True)


def _with_read(
    source: SourceState, plan: Plan, records: Records, *, read: Collection[str], settled: bool
) -> Records:
    """Return the records of the plan's tables, with new ones of those that are `read`."""
    changed = merged_records(source, plan.tables, records)
    for table in plan.tables:
        found = source.tables.get((table.schema, table.table))
        if found is not None and table.source in read:
            changed[table.source] = RelationRecord.of(table, found, settled=settled)
    return changed


def _change_records(
    control: ObjectStore,
    plan: Plan,
    change: Callable[[Records], Records],
    *,
    keeps_others: bool,
) -> None:
    """Store the plan's records as `change` returns them; other commands may write meanwhile."""
    for _ in range(_MAX_ATTEMPTS):
        stored = control.read(naming.RELATIONS)
        content, etag = ({"tables": {}}, None) if stored is None else (stored.content, stored.etag)
        others = parse_records(content, ()) if keeps_others else {}
        records = {**others, **change(parse_records(content, plan.tables))}
        if control.write_if(naming.RELATIONS, records_content(records), etag) is not None:
            return
    raise ComponentFailed(
        f"{naming.RELATIONS} was changed by other commands {_MAX_ATTEMPTS} times",
        "wait until they have ended, then run the command again",
    )
