"""Cases of `_current` that one query answers: each has its own keys in a shared table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from cdclake import naming
from cdclake.iceberg.views import AppliedThrough
from cdclake.plan import Table
from tests.model import reference
from tests.model.lake_rows import applied, state_row
from tests.model.scenarios import Case, Key, Live, Place, cases
from tests.model.shapes import shaped_table
from tests.unit.catalogue.test_current import ingested
from tests.unit.verify.cases import CASES
from tests.unit.verify.key_changes import KEY_CHANGES
from tests.unit.verify.lakes import make_table

Rows = list[dict[str, Any]]
STRIDE = 1000  # between the keys of two cases
# The creation of a changed key did not send a value, and nothing has been sent since.
WAITING = {
    "a chain of 12 changed keys",
    "a chain of 5 changed keys",
    "a chain of three changed keys",
    "a chain of which the first part is applied",
    "a chain that takes a value of its middle along",
    "a changed key that a deleted row had, whose tombstone keeps its value",
    "a changed key that a deleted row had, with all of its events in the tail",
    "a changed key that a row had which a resync deleted",
    "a changed key under soft deletes",
    "a changed key whose delete is applied already",
    "a changed key whose row is updated with the value still unchanged",
    "a changed key whose value is in the tail",
    "a changed key whose value is only in what is applied",
    "a key of two rows, one after the other, gives the later row's value",
    "a key that a moved row left and another row takes and leaves",
    "a replayed insert has a value that an applied key change lacks",
    "one value sent with the changed key and one not",
    "two keys that change places",
    "values that lie differently far back",
}
# Replayed events: the value that was found when the creation was applied.
FORMER = {"a replayed update has a newer value than an applied key change was given": "A"}
# The creation is applied without the value.
UNLISTED = {"a replayed insert has a value that an applied key change lacks"}
# No view has the value: it is nowhere, or NULL.
LISTED_ONLY = {
    "a changed key whose delete is not there yet",
    "a changed key with a NULL that was sent",
}
ALL = CASES | KEY_CHANGES


@dataclass(slots=True)
class SharedLake:
    """A table with the rows of several cases, and what its view must show."""

    table: Table
    stamp: AppliedThrough
    log: Rows = field(default_factory=list)
    state: Rows = field(default_factory=list)
    expected: Live = field(default_factory=dict)
    # Values, by key and column, that the creation of a changed key did not send.
    may_lack: set[tuple[Key, str]] = field(default_factory=set)

    def completed(self, live: Live) -> Live:
        """The rows with the expected value wherever one may be lacking, and is NULL."""
        names = [column.name for column in self.table.value_columns]
        return {
            key: tuple(
                self.expected[key][index]
                if value is None and (key, name) in self.may_lack
                else value
                for index, (name, value) in enumerate(zip(names, row, strict=True))
            )
            for key, row in live.items()
        }


def groups() -> Iterator[Any]:
    """Cases with equal tables and stamps, unless they have a floor, which concerns all rows."""
    found: dict[str, list[str]] = {}
    for name, (facts, log, _, stamp, _) in ALL.items():
        alone = stamp.floor or any(row[naming.OP] == "t" for row in log)
        found.setdefault(name if alone else f"{facts}{stamp}", []).append(name)
    for names in found.values():
        yield pytest.param(names, id=f"{names[0]} and {len(names) - 1} more")


def lake_of_cases(names: list[str]) -> SharedLake:
    """The rows of these cases."""
    lake = SharedLake(make_table(**ALL[names[0]][0]), ALL[names[0]][3])
    for number, name in enumerate(names):
        _, log, state, _, live = ALL[name]
        lake.log += _moved_to(number, log)
        lake.state += _moved_to(number, state)
        for key, v, *values in live:
            if name in WAITING | FORMER.keys():
                values = [FORMER.get(name)] * len(values)
            lake.expected[(key + number * STRIDE,)] = (v, *values)
    return lake


def lacking(names: Sequence[str]) -> set[str]:
    """The cases with a row that lacks a value."""
    return {*names} & ((WAITING | LISTED_ONLY) - UNLISTED)


def catalogue() -> Iterator[Any]:
    """The catalogue's cases by shape, or one by itself, with what is applied of them.

    A stamp may be older than the state: events that are applied are then read again.
    """
    found: dict[str, list[Case]] = {}
    for case in cases():
        found.setdefault(case.id if case.alone else case.shape, []).append(case)
    for name, members in found.items():
        steps = max(len(case.batches) for case in members)
        for step in range(steps + 1):
            yield _given(f"{name}-{step}-applied", members, step, step, step == 1)
        for stamped in range(steps):
            is_default = name == "plain" and stamped == 0
            yield _given(f"{name}-stamped-{stamped}", members, steps, stamped, is_default)


def _given(name: str, members: list[Case], step: int, stamped: int, is_default: bool) -> Any:
    marks = () if is_default else pytest.mark.slow
    return pytest.param(members, step, stamped, id=name, marks=marks)


def lake_of_catalogue(members: list[Case], step: int, stamped: int) -> SharedLake:
    """The rows with `step` batches applied, under the stamp of `stamped` batches."""
    table = shaped_table(members[0].shape)
    lake = SharedLake(table, AppliedThrough())
    held: list[reference.Event] = []
    for number, case in enumerate(members):
        place, batches = Place(number=number), len(case.batches)
        log, events = ingested(case, table, min(step, batches), place)
        lake.log += log
        rows = reference.replay(events, table).items()
        lake.state += [state_row(key, row, table) for key, row in rows]
        held += ingested(case, table, min(stamped, batches), place)[1]
        lake.expected |= {(place.key(key[0]), *key[1:]): row for key, row in case.state.items()}
    lake.stamp = applied(held, stamped)
    lake.may_lack = unsent_values(table, lake.log)
    return lake


def unsent_values(table: Table, log: Rows) -> set[tuple[Key, str]]:
    """The values, by key and column, that the creations of changed keys did not send."""
    return {
        (tuple(row[key] for key in table.key), name)
        for row in log
        if row[naming.OP] == "c"
        for name in row[naming.UNAVAILABLE] or ()
    }


def _moved_to(number: int, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows under the keys of that case."""
    return [
        {**row, "id": row["id"] + number * STRIDE} if "id" in row else dict(row) for row in rows
    ]
