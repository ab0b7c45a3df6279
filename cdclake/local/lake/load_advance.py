"""How far the snapshots of tables have come, for the display of a command's progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cdclake.activity import Advance, is_shown
from cdclake.jobs.control.progress import Progress
from cdclake.local.lake.delivered_offsets import arrived_offsets
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.no_answer import answer_or_unknown
from cdclake.local.lake.table_loads import LoadingTable, begin_loads, rows_since
from cdclake.plan import Table


def advance_of(loads: Mapping[str, LoadingTable]) -> Advance | None:
    """Return the rows of unfinished snapshots; None without any.

    The table with the most rows to come is named.
    """
    if not loads:
        return None
    name, largest = max(loads.items(), key=lambda item: item[1].estimated_rows or 0)
    estimates = [load.estimated_rows for load in loads.values()]
    known = [estimate for estimate in estimates if estimate is not None]
    others = f" and {len(loads) - 1} more" if len(loads) > 1 else ""
    doing = "replaces the rows of" if largest.phase == "replacing" else "reads"
    return Advance(
        done=sum(load.rows for load in loads.values()),
        total=sum(known) if len(known) == len(estimates) else None,
        now=f"{doing} {name}{others}",
    )


def reading_from_now(lake: LocalLake, table: Table) -> Callable[[], Advance | None]:
    """Return a function that reads the records of the table that the lake has processed since."""
    if not is_shown():
        return lambda: None
    begun = begin_loads(lake, [table])[table.name]

    def read() -> Advance | None:
        progress = answer_or_unknown(lambda: Progress.load(lake.control), None)
        if progress is None:
            return None
        arrived = arrived_offsets(lake.kafka, lake.plan, progress).get(table.name, {})
        return Advance(done=rows_since(begun, arrived), total=begun["estimated_rows"])

    return read
