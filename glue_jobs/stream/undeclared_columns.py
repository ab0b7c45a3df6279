"""Tables that stop because the source has columns that the plan does not declare."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cdclake.jobs.control.store import ObjectStore
from cdclake.plan import Plan, Table
from cdclake.postgres.new_columns import stop_reason
from cdclake.source_notes import read_new_columns


def undeclared_stops(
    control: ObjectStore, plan: Plan, flowing: Collection[str]
) -> Iterator[tuple[Table, str, list[str]]]:
    """Yield the flowing tables that `new_columns: stop` stops, with the reason and the columns.

    A table that is being resumed flows, and stops again as long as it has such columns.
    """
    for name, columns in read_new_columns(control, plan).items():
        if name in flowing:
            table = plan.table(name)
            yield table, stop_reason(table, columns), list(columns)
