"""SQL statements of a bulk load: to hold its snapshot, and to read a table within it."""

from __future__ import annotations

import math

from cdclake.plan import Table
from cdclake.postgres.event_values import SESSION, log_value
from cdclake.postgres.quoting import identifier, literal, qualified
from cdclake.postgres.sent_values import sent_value
from cdclake.postgres.server import HAS_FAILOVER_SLOTS

PLACE = "cdc__place"  # the row's ctid; used in conditions, never fetched
_BLOCKS_PER_CHUNK = 8192  # 64 MB: a task of seconds
_MAX_CHUNKS = 4000
LIMIT_WAITS = "SET lock_timeout = '10s'"

# Counts the locks for which others have waited longer than a reader waits, because of this session.
OVERDUE_WAITS = (
    "SELECT count(*) FROM pg_locks WHERE NOT granted"
    " AND waitstart < clock_timestamp() - interval '10 seconds'"
    " AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
)


def create_slot(slot: str, version: int) -> str:
    """Return the replication command that returns the slot's consistent point and snapshot.

    From PostgreSQL 17 on (`version` as in `server_version_num`) standbys may copy the slot.
    """
    options = "SNAPSHOT 'export'" + (", FAILOVER true" if version >= HAS_FAILOVER_SLOTS else "")
    return f"CREATE_REPLICATION_SLOT {identifier(slot)} LOGICAL pgoutput ({options})"


def cancel_creation(slot: str) -> str:
    """Return a SELECT that cancels the command that still creates the slot."""
    return (
        "SELECT count(pg_cancel_backend(active_pid)) FROM pg_replication_slots"
        f" WHERE slot_name = {literal(slot)}"
    )


def slot_state(slot: str) -> str:
    """Return a SELECT of the slot: whether it is active, whether it is lost, what is confirmed."""
    return (
        "SELECT active, coalesce(wal_status, '') = 'lost' AS lost,"
        " (confirmed_flush_lsn - '0/0'::pg_lsn)::bigint AS confirmed"
        f" FROM pg_replication_slots WHERE slot_name = {literal(slot)}"
    )


def drop_slot(slot: str) -> str:
    """Return a SELECT that drops the slot, whose WAL is then gone."""
    return f"SELECT pg_drop_replication_slot({literal(slot)})"


def lock_against_rewrites(table: Table) -> str:
    """Return a query that reads nothing, but locks the table until its transaction ends.

    The lock blocks no writer. It blocks statements that would rewrite or empty the table under an
    older snapshot. LOCK TABLE would need a privilege on every column.
    """
    return f"SELECT FROM {qualified(table.schema, table.table)} LIMIT 0"


def import_snapshot(snapshot: str) -> list[str]:
    """Return the first statements of a reading session: it then sees the exported snapshot.

    A rewrite that waits for the lock of `lock_against_rewrites` makes readers wait behind it. As
    the lock is kept for the readers, they would wait forever without a limit.
    """
    return [
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        f"SET TRANSACTION SNAPSHOT {literal(snapshot)}",
        LIMIT_WAITS,
        *SESSION,
    ]


def blocks(table: Table) -> str:
    """Return a SELECT of the table's blocks; for a partitioned table of its largest partition."""
    name = literal(qualified(table.schema, table.table))
    own, partitions = f"pg_relation_size({name}::regclass)", f"pg_partition_tree({name}::regclass)"
    largest = f"SELECT max(pg_relation_size(relid)) FROM {partitions}"  # of a plain table: none
    return f"SELECT greatest({own}, ({largest})) / current_setting('block_size')::bigint"


def column_names(table: Table) -> str:
    """Return a SELECT of the names of the table's columns."""
    name = literal(qualified(table.schema, table.table))
    return (
        f"SELECT attname::text FROM pg_attribute WHERE attrelid = {name}::regclass"
        " AND attnum > 0 AND NOT attisdropped"
    )


def unique_indexes(table: Table) -> str:
    """Return a SELECT of the number of unique indexes over the table's key."""
    name = literal(qualified(table.schema, table.table))
    key = ", ".join(literal(column) for column in sorted(c.source for c in table.key_columns))
    return (
        f"SELECT count(*) FROM pg_index AS i WHERE i.indrelid = {name}::regclass"
        " AND i.indisunique AND i.indisvalid AND i.indimmediate"
        " AND i.indpred IS NULL AND i.indexprs IS NULL"
        f' AND ARRAY[{key}] = (SELECT array_agg(a.attname::text ORDER BY a.attname COLLATE "C")'
        " FROM pg_attribute AS a WHERE a.attrelid = i.indrelid"
        " AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1]))"
    )


def chunks(table_blocks: int) -> list[str]:
    """Return conditions on `PLACE`; each row of the table meets exactly one of them.

    They are open at both ends, so blocks that were added later belong to the last one.
    """
    count = min(max(1, math.ceil(table_blocks / _BLOCKS_PER_CHUNK)), _MAX_CHUNKS)
    starts = [table_blocks * index // count for index in range(1, count)]
    lower = [None, *starts]
    upper = [*starts, None]
    return [_between(low, high) for low, high in zip(lower, upper, strict=True)]


def _between(low: int | None, high: int | None) -> str:
    place = identifier(PLACE)
    bounds = [
        *([f"{place} >= '({low},0)'::tid"] if low is not None else []),
        *([f"{place} < '({high},0)'::tid"] if high is not None else []),
    ]
    return " AND ".join(bounds) or "true"


def value_name(index: int) -> str:
    """Return the name, in the rows read, of the table's column at this index."""
    return f"c{index}"


def rows(table: Table) -> str:
    """Return a SELECT of every row in the changelog's form, with its `PLACE`."""
    selected = ", ".join([*values(table), f"ctid AS {PLACE}"])
    return f"SELECT {selected} FROM {qualified(table.schema, table.table)}"


def values(table: Table) -> list[str]:
    """Return the expressions of the table's columns in the changelog's form, under `value_name`."""
    return [
        f"{log_value(column, table)} AS {value_name(index)}"
        for index, column in enumerate(table.columns)
    ]


def sent_name(index: int) -> str:
    """Return the name, in the rows sent, of the table's column at this index."""
    return f"s{index}"


def sent_rows(table: Table, condition: str) -> str:
    """Return a SELECT of the rows of a chunk, as `sent_value` has them, under `sent_name`."""
    names = [sent_name(index) for index, _ in enumerate(table.columns)]
    return _selected(names, _sent(table), table, condition)


def sent_rows_in_both_forms(table: Table, condition: str) -> str:
    """Return a SELECT of the same rows, also in the changelog's form under `value_name`."""
    indexes = range(len(table.columns))
    names = [*map(sent_name, indexes), *map(value_name, indexes)]
    return _selected(names, [*_sent(table), *values(table)], table, condition)


def _sent(table: Table) -> list[str]:
    return [
        f"{sent_value(column, table)} AS {sent_name(index)}"
        for index, column in enumerate(table.columns)
    ]


def _selected(names: list[str], expressions: list[str], table: Table, condition: str) -> str:
    source = qualified(table.schema, table.table)
    inner = f"SELECT {', '.join(expressions)}, ctid AS {PLACE} FROM {source}"
    return f"SELECT {', '.join(names)} FROM ({inner}) AS source_rows WHERE {condition}"


def count(table: Table) -> str:
    """Return a SELECT of the number of rows."""
    return f"SELECT count(*) AS {value_name(0)} FROM {qualified(table.schema, table.table)}"
