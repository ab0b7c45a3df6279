"""Columns of delivered tables that the source has widened, as Firehose's functions follow them.

The source check notes a wider type; the stream then widens the changelog, and notes that too. The
functions follow the second note: until then a row with a larger value would not fit its changelog.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from cdclake.control_objects import WIDENED, WIDENED_CHANGELOGS
from cdclake.control_reader import ControlReader
from cdclake.firehose.erased_rows import REGISTER_SECONDS
from cdclake.iceberg.widening import WidenedTypes, widened_tables, with_widened
from cdclake.plan import Plan
from cdclake.stream_requests import ControlStore

COMMON_START = WIDENED.removesuffix(".json")  # of the names of both notes: one request lists them


@dataclass(frozen=True, slots=True)
class WidenedColumns:
    """Widened types of the source's columns, and of those in the changelogs."""

    noted: WidenedTypes = field(default_factory=dict)
    changelogs: WidenedTypes = field(default_factory=dict)

    def over(self, plan: Plan) -> Plan:
        """Return the plan with the types that the changelogs have."""
        return with_widened(plan, self.changelogs)

    def awaited(self, plan: Plan) -> list[str]:
        """Return the delivered tables whose changelogs the stream has yet to widen."""
        followed = self.over(plan)
        awaited = widened_tables(followed, with_widened(followed, self.noted))
        return [name for name in awaited if plan.table(name).delivery == "firehose"]


ReadWidened = Callable[[], WidenedColumns]


class RecentlyWidened:
    """Reader of the widened columns, again when they are older than `REGISTER_SECONDS`."""

    def __init__(self, control: ControlReader, clock: Callable[[], float] = time.time) -> None:
        # The default is the wall clock, as in `RecentRegister`.
        self._control, self._clock = control, clock
        self._read_at, self._found = float("-inf"), WidenedColumns()

    def read(self) -> WidenedColumns:
        """Return the widened columns; raise an error if they are too old and cannot be read."""
        now = self._clock()
        if not 0 <= now - self._read_at < REGISTER_SECONDS:
            # Listed first: S3 answers 403 for a missing object without the right to list all.
            existing = {*self._control.names_from(COMMON_START)}
            noted, changelogs = (
                _types(self._control, name) if name in existing else {}
                for name in (WIDENED, WIDENED_CHANGELOGS)
            )
            self._found, self._read_at = WidenedColumns(noted, changelogs), now
        return self._found


def note_changelogs(control: ControlStore, plan: Plan, created: Collection[str]) -> None:
    """Note the types that changelogs have in the columns that the source has widened.

    The changelogs of the tables `created` have the plan's types; the others keep their notes.
    """
    noted, before = _types(control, WIDENED), _types(control, WIDENED_CHANGELOGS)
    found = {
        table.name: {c.name: c.type for c in table.columns if c.name in noted[table.name]}
        if table.name in created
        else before.get(table.name, {})
        for table in plan.tables
        if table.delivery == "firehose" and table.name in noted
    }
    if found != before:
        control.write(WIDENED_CHANGELOGS, {"tables": found})


def _types(control: ControlReader | ControlStore, name: str) -> WidenedTypes:
    stored = control.read(name)
    return {} if stored is None else stored.content["tables"]
