"""SQL of the reader's relations, over pinned snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from cdclake import naming
from cdclake.control_objects import SourceProgress
from cdclake.delivery_remedies import column_added_by
from cdclake.errors import InputError
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.rebuilt_view import rebuilt_view
from cdclake.iceberg.tail_facts import TailFacts, view_over_tail
from cdclake.iceberg.views import AppliedThrough, history_view
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, state_stamp
from cdclake.jobs.reader.catalog import Catalog, CatalogTable, TableSnapshot
from cdclake.jobs.reader.point_in_time import NOW, Moment
from cdclake.plan import Table

TOO_EARLY = "cdclake: "  # start of the message of a query before a table's first snapshot
_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "string": "VARCHAR",
    "binary": "BLOB",
}


def names_of(table: Table) -> tuple[str, ...]:
    """Return the names of a table's relations: its state, changelog and views."""
    return relations_of(table.name)


def relations_of(name: str) -> tuple[str, ...]:
    """Return the names of the relations of the table with this name."""
    return (
        name,
        naming.changes_name(name),
        naming.current_name(name),
        naming.history_name(name),
    )


def scan(table: CatalogTable, moment: Moment) -> str:
    """Return a SELECT of the table's rows at that time; no rows before its first snapshot."""
    return _scan(table, moment.of(table))


def is_too_early(table: CatalogTable, moment: Moment) -> bool:
    """Check whether the time is before the table's first commit."""
    return bool(table.history) and moment.of(table) is None


def refusal(table: CatalogTable, first: CatalogTable) -> str:
    """Return a SELECT that fails when it is executed, so that only queries of the table do.

    `first` is the table with the first commit, the changelog of a state.
    """
    begun = datetime.fromtimestamp(first.history[0][0] / 1000, UTC).isoformat()
    message = f"{TOO_EARLY}{table.name} has nothing of that time; ask for {begun} or later"
    return refusal_of(table, message)


def refusal_of(table: CatalogTable, message: str) -> str:
    """Return a SELECT in the table's columns that fails with this message when it is executed."""
    return failing(_nothing(table), message)


def lacking_columns(table: Table, *stored: CatalogTable) -> InputError | None:
    """Return the refusal to read declared columns that one of the tables does not have yet."""
    names = [{field["name"] for field in each.columns} for each in stored]
    lacking = [c.name for c in table.columns if not all(c.name in each for each in names)]
    if not lacking:
        return None
    listed = ", ".join(map(repr, lacking))
    return InputError(
        f"{table.name} has no column {listed} yet, although the pipeline file declares it",
        column_added_by(table.name, table.delivery),
    )


def refusal_of_lacking(table: Table, log: CatalogTable, state: CatalogTable) -> str | None:
    """Return a SELECT of the declared columns that fails, if the lake lacks one of them."""
    refused = lacking_columns(table, log, state)
    if refused is None:
        return None
    declared = (
        f"{to_state(f'CAST(NULL AS {c.column_type.log})', c.column_type, DUCKDB)}"
        f" AS {DUCKDB.name(c.name)}"
        for c in table.columns
    )
    ours = (_null(field) for field in log.columns if naming.is_ours(field["name"]))
    nothing = f"SELECT {', '.join([*declared, *ours])} WHERE false"
    return failing(nothing, f"{TOO_EARLY}{refused.message}; {refused.remedy}")


def failing(nothing: str, message: str) -> str:
    """Return the SELECT without rows so that it fails with this message when it is executed."""
    return f"{nothing} OR error({DUCKDB.text(message)})::BOOLEAN"


def only_current(name: str) -> str:
    """Return the message of a query of a table in plain files as of an earlier time."""
    return (
        f"{TOO_EARLY}{name} is kept in plain files, which have only its current rows"
        "; leave the table out, or query it without --at and --as-of"
    )


def without_commits(name: str) -> str:
    """Return the message of a query, as of a commit time, of a table that has no changelog."""
    return (
        f"{TOO_EARLY}{name} has no changelog, and so no rows as of a commit time"
        "; leave the table out, or query it without --as-of"
    )


def _scan(table: CatalogTable, snapshot: TableSnapshot | None) -> str:
    if snapshot is None:
        return _nothing(table)
    location = DUCKDB.text(table.location)
    if snapshot is table.current:
        return f"SELECT * FROM iceberg_scan({location})"
    columns = _under_todays_names(table, snapshot)
    then = (
        f"SELECT {columns} FROM iceberg_scan({location}, snapshot_from_id = {snapshot.id}::UBIGINT)"
    )
    # A snapshot has its own columns: later columns are NULL, widened types are the current ones.
    return f"{then} UNION ALL BY NAME {_nothing(table)}"


def _under_todays_names(table: CatalogTable, snapshot: TableSnapshot) -> str:
    """Select the snapshot's columns by field id, as a dropped column's name may be reused today."""
    today = {field["id"]: field["name"] for field in table.columns}
    return ", ".join(
        f"{DUCKDB.name(field['name'])} AS {DUCKDB.name(today.get(field['id'], field['name']))}"
        for field in snapshot.columns
    )


def applied_at(state: CatalogTable, moment: Moment) -> AppliedThrough:
    """Return how far the state had been applied at that time, from its stamp."""
    stamped = state.stamped(moment.of(state))
    if stamped is None or stamped.stamp is None:
        return AppliedThrough()
    return state_stamp(stamped.stamp)


def is_applied(state: CatalogTable, log: CatalogTable, moment: Moment) -> bool:
    """Check whether the state contains the whole changelog at that time."""
    newest = moment.of(log)
    if newest is None:
        return True
    applied, stamped = applied_at(state, moment), log.stamped(newest)
    if stamped is None or stamped.stamp is None:
        return applied.sequence >= newest.sequence
    return applied.ingested >= ChangesStamp.from_json(stamped.stamp).ingested_through


def progress_now(table: Table, state: CatalogTable, log: CatalogTable) -> SourceProgress:
    """Return how far a derived table that is refreshed now would have read this table."""
    newest, applied, through = NOW.of(log), applied_at(state, NOW), 0
    if table.delivery == "firehose":
        through = 0 if newest is None else newest.sequence
    else:
        stamped = log.stamped(newest)
        if stamped is not None and stamped.stamp is not None:
            through = ChangesStamp.from_json(stamped.stamp).ingested_through
    return SourceProgress(through, applied.floor, applied.rebuilt)


def may_be_in_kafka(table: Table, catalog: Catalog) -> bool:
    """Return whether Kafka may have events of the table: the log of a polled one was read before.

    Polls keep the offsets in the stamp that the stream has left.
    """
    if table.delivery != "poll":
        return True
    log = catalog.load(table.changes)
    stamped = log.stamped(log.current)
    if stamped is None or stamped.stamp is None:
        return False
    return bool(ChangesStamp.from_json(stamped.stamp).offsets)


def live_rows(state: CatalogTable, *, schema: str) -> str:
    """Return a SELECT of the live rows of a state without its plan, and of the source's columns."""
    columns = ", ".join(
        DUCKDB.name(field["name"]) for field in state.columns if not naming.is_ours(field["name"])
    )
    return f"SELECT {columns} FROM {relation(schema, state.name)} WHERE NOT {naming.DELETED}"


def views(
    table: Table, applied: AppliedThrough, tail: TailFacts, *, schema: str
) -> tuple[tuple[str, str], ...]:
    """Return (name, SELECT) of `<t>_current` and `<t>_history` over the relations of one time.

    `applied` is how far the state had been applied then, and so where the changelog's tail begins;
    `tail` is what that contains.
    """
    changes, state = relation(schema, table.changes), relation(schema, table.name)
    current = view_over_tail(
        table, tail, state=state, changes=changes, applied=applied, dialect=DUCKDB
    )
    history = history_view(table, changes=changes, dialect=DUCKDB)
    return (
        (naming.current_name(table.name), current),
        (naming.history_name(table.name), history),
    )


def rebuilt_rows(table: Table, log: CatalogTable, applied: AppliedThrough, *, schema: str) -> str:
    """Return a SELECT of the live rows that the applied part of the changelog gives.

    Raises:
        InputError: if Firehose writes the changelog, and the snapshot that the state was updated
            from has expired.
    """
    if table.delivery != "firehose":
        applied_log = (
            f"SELECT * FROM {relation(schema, table.changes)}"
            f" WHERE {naming.INGESTED_AT} <= {DUCKDB.instant(applied.ingested)}"
        )
    else:
        applied_log = _scan(log, _snapshot_through(log, applied.sequence))
    return rebuilt_view(table, changes=applied_log, floor=applied.floor, dialect=DUCKDB)


def _snapshot_through(log: CatalogTable, sequence: int) -> TableSnapshot | None:
    if not sequence:
        return None
    found = [snapshot for snapshot in log.snapshots.values() if snapshot.sequence <= sequence]
    if not found:
        raise InputError(
            f"the snapshot of {log.name} that the state was updated from has expired",
            "run the command again when new changes have been applied",
        )
    return max(found, key=lambda snapshot: snapshot.sequence)


def relation(schema: str, name: str) -> str:
    """Return the relation's qualified, quoted name."""
    return f"{DUCKDB.name(schema)}.{DUCKDB.name(name)}"


def _nothing(table: CatalogTable) -> str:
    return f"SELECT {', '.join(map(_null, table.columns))} WHERE false"


def _null(field: Mapping[str, Any]) -> str:
    return f"CAST(NULL AS {duckdb_type(field['type'])}) AS {DUCKDB.name(field['name'])}"


def duckdb_type(iceberg: str | Mapping[str, Any]) -> str:
    """Return DuckDB's name of an Iceberg type.

    >>> duckdb_type({"type": "list", "element": "string"}), duckdb_type("decimal(12, 2)")
    ('VARCHAR[]', 'DECIMAL(12, 2)')
    """
    if isinstance(iceberg, str):
        return iceberg.upper() if iceberg.startswith("decimal") else _TYPES[iceberg]
    if iceberg["type"] == "list":
        return f"{duckdb_type(iceberg['element'])}[]"
    if iceberg["type"] == "map":
        return f"MAP({duckdb_type(iceberg['key'])}, {duckdb_type(iceberg['value'])})"
    fields = (f"{DUCKDB.name(f['name'])} {duckdb_type(f['type'])}" for f in iceberg["fields"])
    return f"STRUCT({', '.join(fields)})"
