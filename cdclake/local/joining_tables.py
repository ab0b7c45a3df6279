"""Tables that join a streaming lake, or get columns: what the jobs and the connector are asked for.

Such a table is read by Debezium's incremental snapshot while the others keep streaming:
`snapshot.mode=initial` reads nothing once the connector has offsets.
"""

from __future__ import annotations

from collections.abc import Callable

from cdclake.errors import InputError
from cdclake.jobs.runtime.source import signal_snapshot
from cdclake.local.lake.lake import LocalLake
from cdclake.local.operations_backend import local_operations
from cdclake.local.reader.table_figures import last_position
from cdclake.plan_diff import PlanDiff
from cdclake.stream_requests import request_resume


def refuse_without_sweep(lake: LocalLake, change: PlanDiff) -> None:
    """Raise InputError if a table joins again that Firehose delivers, unless an epoch begins."""
    if change.is_first or not change.by_signal:
        return
    for table in change.joining:
        if table.delivery == "firehose" and last_position(lake, table) is not None:
            raise InputError(
                f"the lake already contains {table.source} as {table.name}, and rows that were"
                " deleted meanwhile cannot be detected: the stream does not write what Firehose"
                " delivers",
                "add it under another `name:`",
            )


def join_tables(lake: LocalLake, change: PlanDiff, *, write_plan: Callable[[], None]) -> None:
    """Publish the plan to the jobs, and let tables go on that were stopped by their columns.

    Such a table reads its gap from Kafka once its columns are declared differently.
    """
    write_plan()
    for table in change.reshaped:
        # After the plan, since the stream reads requests before the plan. Also for a table that is
        # streaming: a batch with the previous plan may still stop it.
        request_resume(lake.control, table.name, columns_changed=True)


def request_snapshots(lake: LocalLake, change: PlanDiff) -> None:
    """Signal a snapshot of joining and widened tables; call it with the connector stopped.

    The snapshot of a rejoining table does not contain rows that were deleted while it was absent,
    or that vanished with the change of its relation, perhaps before the stream has read them.
    The stream deletes these stale rows after it has read the snapshot, as `resync` does, so that a
    row that changes meanwhile keeps the values that the change does not contain. It then counts
    the rows whose values are older than the request, as those of a new column may be.

    A table that is still being read is signalled without a request: the end of that read would end
    the request, and its rows from before the request would be deleted as stale.
    """
    if change.is_first or not change.by_signal or not change.lacking:
        return
    kept = {table.name for table in change.kept}
    operations = local_operations(lake)
    being_read = operations.backend.tables_being_read()
    requested = [
        table
        for table in change.lacking
        if table.delivery == "stream" and table.source not in being_read
    ]
    known = {table.name: last_position(lake, table) for table in requested}
    stored = {name: at for name, at in known.items() if at is not None or name in kept}
    requests = operations.request_rejoins(stored)
    if others := [table for table in change.lacking if table.name not in requests]:
        signal_snapshot(lake.dsn, others)
    for table in change.lacking:
        if table.name in requests:
            signal_snapshot(lake.dsn, [table], requests[table.name])
