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
from cdclake.plan import Table
from cdclake.plan_diff import PlanDiff
from cdclake.stream_requests import request_resume


def request_snapshots(lake: LocalLake, change: PlanDiff) -> None:
    """Signal a snapshot of joining and widened tables; call it with the connector stopped."""
    if change.is_first or not change.by_signal or not change.lacking:
        return
    signal_snapshot(lake.dsn, change.lacking)


def join_tables(lake: LocalLake, change: PlanDiff, *, write_plan: Callable[[], None]) -> None:
    """Publish the plan to the jobs, and request a resync of tables that rejoin the lake.

    The snapshot of a rejoining table does not contain rows that were deleted while it was absent,
    or that vanished with the change of its relation, perhaps before the stream has read them.
    The stream deletes these stale rows after it has read the snapshot, as `resync` does, so that a
    row that changes meanwhile keeps the values that the change does not contain. A table that was
    stopped because of its columns reads its gap from Kafka once they are declared differently.
    """
    if not change.is_first and change.by_signal:
        for table in change.joining:
            known = last_position(lake, table)
            if known is not None:
                _refuse_without_sweep(table)
            if known is not None or (table in change.kept and table.delivery == "stream"):
                local_operations(lake).request_rejoin(table, known)
    write_plan()
    for table in change.reshaped:
        # After the plan, since the stream reads requests before the plan. Also for a table that is
        # streaming: a batch with the previous plan may still stop it.
        request_resume(lake.control, table.name, columns_changed=True)


def _refuse_without_sweep(table: Table) -> None:
    if table.delivery == "firehose":
        raise InputError(
            f"the lake already contains {table.source} as {table.name}, and rows that were deleted"
            " meanwhile cannot be detected: the stream does not write what Firehose delivers",
            "add it under another `name:`",
        )
