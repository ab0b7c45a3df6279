"""The statements of a bulk load: what holds its snapshot, and what reads a table within it."""

from __future__ import annotations

import math

from cdclake.plan import Table
from cdclake.postgres.event_values import SESSION, log_value
from cdclake.postgres.quoting import identifier, literal, qualified

PLACE = "cdc__place"  # the row's ctid; never fetched, only asked for
_BLOCKS_PER_CHUNK = 8192  # 64 MB: a task of seconds
_MAX_CHUNKS = 4000


def create_slot(slot: str) -> str:
    """The replication command whose answer is the slot's consistent point and its snapshot."""
    return f"CREATE_REPLICATION_SLOT {identifier(slot)} LOGICAL pgoutput (SNAPSHOT 'export')"


def lock_against_rewrites(table: Table) -> str:
    """A query that reads nothing: what it locks until its transaction ends is what matters.

    The lock keeps no writer waiting. It keeps out what would rewrite the table or empty it under an
    older snapshot. LOCK TABLE would ask for a right on every column.
    """
    return f"SELECT FROM {qualified(table.schema, table.table)} LIMIT 0"


def import_snapshot(snapshot: str) -> str:
    """What each reading session runs first: everything after it sees the exported snapshot."""
    return "; ".join(
        [
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            f"SET TRANSACTION SNAPSHOT {literal(snapshot)}",
            *SESSION,
        ]
    )


def blocks(table: Table) -> str:
    """SELECT of the table's blocks; of a partitioned table those of its largest partition."""
    name = literal(qualified(table.schema, table.table))
    own, partitions = f"pg_relation_size({name}::regclass)", f"pg_partition_tree({name}::regclass)"
    largest = f"SELECT max(pg_relation_size(relid)) FROM {partitions}"  # of a plain table: none
    return f"SELECT greatest({own}, ({largest})) / current_setting('block_size')::bigint"


def unique_indexes(table: Table) -> str:
    """SELECT of how many indexes there are that let no key of the table stand twice."""
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
    """Conditions on `PLACE` that each row of the table meets exactly one of.

    Open at both ends, so that blocks which were added since belong to the last.
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
    """Name, in the rows read, of the table's column at this place."""
    return f"c{index}"


def rows(table: Table) -> str:
    """SELECT of every row in the log's forms, and where it stands."""
    values = [
        f"{log_value(column, table)} AS {value_name(index)}"
        for index, column in enumerate(table.columns)
    ]
    selected = ", ".join([*values, f"ctid AS {PLACE}"])
    return f"SELECT {selected} FROM {qualified(table.schema, table.table)}"


def count(table: Table) -> str:
    """SELECT of the number of rows."""
    return f"SELECT count(*) AS {value_name(0)} FROM {qualified(table.schema, table.table)}"
