"""Consistent view of the source at one LSN, shared by all reading tasks.

The connection that creates the replication slot exports the snapshot of the slot's consistent
point: everything committed before it is in the snapshot, everything else arrives through the slot.
The snapshot is valid while that connection stays open and idle, so it ends with the job.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from cdclake.errors import ComponentFailed
from cdclake.jobs.bulk_load.load_source import (
    LoadSource,
    connected,
    execute,
    first_value,
    refusal,
)
from cdclake.jobs.bulk_load.source_reader import SourceReader
from cdclake.plan import Table
from cdclake.postgres import bulk_read
from cdclake.postgres.published import as_named_now

_LOOK_EVERY_S = 2
_VERSION = "SELECT current_setting('server_version_num')::bigint"
_REPLICATION = {
    "replication": "database",
    "preferQueryMode": "simple",
    "assumeMinServerVersion": "9.4",  # below it the driver sends no `replication`
}


@dataclass(frozen=True, slots=True)
class ExportedSnapshot:
    """View of the source at `lsn`, the slot's consistent point; sessions import it as `name`."""

    source: LoadSource
    name: str
    lsn: int
    read_at: int  # microseconds since 1970
    locks: Any  # the connection that keeps the tables from being rewritten

    @property
    def reader(self) -> SourceReader:
        """Access to the rows."""
        return SourceReader(
            words=self.source.words, authorities=self.source.authorities, snapshot=self.name
        )

    def named_now(self, table: Table) -> Table:
        """Return the table with its columns' current names: a declared rename may be still to come.

        The locks keep the names until the load ends. A missing column is left for the read to
        refuse.
        """
        if not any(column.renamed_from for column in table.columns):
            return table
        with self.reader.batches(bulk_read.column_names(table)) as batches:
            names = {name for batch in batches for name in batch.column(0).to_pylist()}
        named = as_named_now(table, names)
        return named if len(named.columns) == len(table.columns) else table

    def chunks(self, table: Table) -> list[str]:
        """Return conditions that divide the table's rows (`bulk_read.chunks`)."""
        return bulk_read.chunks(first_value(self.locks, bulk_read.blocks(table)))

    def count(self, table: Table) -> int:
        """Count the table's rows."""
        return self.reader.number(bulk_read.count(table))

    def has_unique_keys(self, table: Table) -> bool:
        """Return whether a unique index in the source enforces unique keys."""
        return first_value(self.locks, bulk_read.unique_indexes(table)) > 0

    def check(self) -> None:
        """Raise ComponentFailed if tables may have been rewritten since the snapshot was taken."""
        first_value(self.locks, "SELECT 1")


@contextmanager
def exported_snapshot(
    source: LoadSource, slot: str, tables: Sequence[Table]
) -> Iterator[ExportedSnapshot]:
    """Create the slot and hold its snapshot inside the block.

    The locks come first: a table rewritten between snapshot and lock would look empty. Raises
    ComponentFailed if the database refuses, for instance because the slot exists, or if another
    session waits for these locks while the slot is created.
    """
    locks = connected(source)
    try:
        locks.setAutoCommit(False)
        for table in tables:
            execute(locks, bulk_read.lock_against_rewrites(table))
        exporter = connected(source, **_REPLICATION)
        try:
            version = first_value(locks, _VERSION)
            lsn, name = _create_slot_or_give_way(exporter, locks, slot, version)
            yield ExportedSnapshot(source, name, lsn, time.time_ns() // 1000, locks)
        finally:
            exporter.close()
    finally:
        locks.close()


def _create_slot_or_give_way(exporter: Any, locks: Any, slot: str, version: int) -> tuple[int, str]:
    """Create the slot; give up if a session has waited ten seconds for the locks.

    PostgreSQL waits for every running transaction. One that waits itself for the locks would never
    end, and all readers and writers of its table would wait behind it. PostgreSQL detects no
    deadlock, since the session with the locks is idle.
    """
    gives_way = False
    with ThreadPoolExecutor(1) as thread:
        creation = thread.submit(_create_slot, exporter, slot, version)
        while not wait([creation], _LOOK_EVERY_S).done:
            if not gives_way and first_value(locks, bulk_read.OVERDUE_WAITS) > 0:
                first_value(locks, bulk_read.cancel_creation(slot))
                gives_way = True
    try:
        return creation.result()
    except ComponentFailed:
        if not gives_way:
            raise
        raise ComponentFailed(
            "a statement that alters or empties a table waits for the bulk load, whose replication"
            " slot waits for open transactions",
            "start the load again (locally `cdclake up`) when both have ended",
            component="postgres",
        ) from None


def _create_slot(connection: Any, slot: str, version: int) -> tuple[int, str]:
    try:
        answer = connection.createStatement().executeQuery(bulk_read.create_slot(slot, version))
        answer.next()
        high, low = answer.getString("consistent_point").split("/")
        return (int(high, 16) << 32) + int(low, 16), answer.getString("snapshot_name")
    except Py4JJavaError as error:
        raise refusal(error) from None
