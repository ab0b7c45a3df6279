"""Erasure of rows by the stream, the changelog's only writer, between two batches.

The rows leave the changelog, the state, the quarantine and the derived tables, and every snapshot
with them expires. Files stay for queries that have planned them; `forget` deletes them later, by
the time of this outcome. Each step may run again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from pyspark.sql import DataFrame

from cdclake import naming
from cdclake.control_objects import ForgetRequest, derived_name
from cdclake.derived_table import DerivedTable
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.limit_condition import is_withheld
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.derived.file_copy import write_files
from cdclake.jobs.derived.refresh import write_whole
from cdclake.jobs.derived.source_snapshot import open_source
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.maintenance.complete_removal import (
    keep_current_snapshot,
    rewrite_without_deleted,
)
from cdclake.jobs.operations.erased_records import (
    LIMIT,
    erased_events,
    erased_records,
    erased_state_keys,
)
from cdclake.jobs.stream.table_stream import TableStream
from cdclake.plan import Table

Json = dict[str, Any]

# S3 gives the times of objects in seconds: what is older than the outcome by more than one second
# was written before the leases were released.
CLOCK_MARGIN_S = 3.0


def erase_rows(
    request: ForgetRequest, mine: TableProgress, stream: TableStream, control: ObjectStore
) -> Json | None:
    """Erase the rows of all registered keys; None if that is not possible yet.

    It has to wait for a batch that drops the events of the request's keys, and for the leases of
    the tables: another job may have files in flight.
    """
    known = stream.erased.positions if stream.erased is not None else {}
    if not known.keys() >= {*request.hashes}:
        return None
    table = stream.table
    derived = list(_derived(stream, control))
    names = [table.name, table.changes, naming.QUARANTINE, *(each.name for each in derived)]
    with ExitStack() as held:
        if not all(held.enter_context(stream.leases.try_hold(name)) for name in names):
            return None
        counts = _erase(stream, mine)
        for each in derived:
            _write_again(stream, each)
        time.sleep(CLOCK_MARGIN_S)
    return {**counts, "derived": [each.name for each in derived]}


def _derived(stream: TableStream, control: ObjectStore) -> Iterator[DerivedTable]:
    """Yield the derived tables that exist and read the table."""
    for derived in stream.plan.derived:
        if stream.table.name in derived.sources and control.read(derived_name(derived.name)):
            yield derived


def _erase(stream: TableStream, mine: TableProgress) -> Json:
    lake, table, erased = stream.lake, stream.table, stream.erased
    assert erased is not None
    with ExitStack() as held:
        events = held.enter_context(persisted(erased_events(lake, table, erased)))
        found = erased_state_keys(lake, table, events, erased)
        keys = held.enter_context(persisted(found))
        records = held.enter_context(persisted(erased_records(lake, table, stream.plan, erased)))
        withheld = records.where(is_withheld("reason")).count()
        counts = {"events": events.count(), "keys": keys.count(), "records": records.count()}
        if counts["keys"]:  # before the changelog: a run that is repeated finds the keys there
            _delete(stream, table.name, keys, _of_key(table, naming.POSITION, "<", LIMIT))
        if counts["events"]:
            same = _of_key(table, naming.POSITION, "=", naming.POSITION)
            _delete(stream, table.changes, events.distinct(), same)
        if counts["records"]:
            places = records.select("topic", "partition", "offset").distinct()
            same = "t.topic = e.topic AND t.partition = e.partition AND t.offset = e.offset"
            named = f"t.`table` = {SPARK.text(table.name)}"
            _delete(stream, naming.QUARANTINE, places, f"{same} AND {named}")
    names = (table.changes, table.name, naming.QUARANTINE)
    for name in names:
        rewrite_without_deleted(lake, name)
    stream.renew_stamps()
    for name in names:
        keep_current_snapshot(lake, name)
    stream.load_again()
    mine.quarantined = max(0, mine.quarantined - (counts["records"] - withheld))
    return counts


def _of_key(table: Table, left: str, comparison: str, right: str) -> str:
    keys = (f"t.{SPARK.name(name)} = e.{SPARK.name(name)}" for name in table.key)
    return " AND ".join([*keys, f"t.{left} {comparison} e.{right}"])


def _delete(stream: TableStream, name: str, found: DataFrame, condition: str) -> None:
    stream.lake.spark.sql(
        f"MERGE INTO {stream.lake.qualified(name)} AS t USING {{found}} AS e"
        f" ON {condition} WHEN MATCHED THEN DELETE",
        found=found,
    )


def _write_again(stream: TableStream, derived: DerivedTable) -> None:
    """Replace a derived table by its query's result, which has no erased row."""
    lake = stream.lake
    for name in derived.sources:
        open_source(lake, stream.plan.table(name))
    if derived.format == "iceberg":
        write_whole(lake, derived)
        keep_current_snapshot(lake, derived.name)
    else:
        write_files(lake, derived)
