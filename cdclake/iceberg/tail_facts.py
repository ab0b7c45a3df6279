"""`<t>_current` over a tail whose contents are known before the query is planned.

The text of `current_view` fits any tail: it looks for truncates and completes changed keys, and an
engine pays for that before it knows that there are none. A reader that has pinned its snapshots
reads the facts first, and then builds the smallest text that they allow.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdclake import naming
from cdclake.iceberg.dialect import Dialect
from cdclake.iceberg.key_changes import lacks_values
from cdclake.iceberg.latest_row import folded_rows, history_part
from cdclake.iceberg.views import (
    AppliedThrough,
    applied_view,
    current_view,
    ingested_after,
    is_late,
    overlaid_state,
    tail_condition,
)
from cdclake.plan import Table


@dataclass(frozen=True, slots=True)
class TailFacts:
    """Contents of a changelog's tail: by default it is empty."""

    events: int = 0
    floor: str = ""  # of the newest truncate among them
    needs_values: bool = False  # a changed key may lack a value that another event has
    lacks_values: bool = False  # an event lacks a value


UNKNOWN = TailFacts(events=1, needs_values=True, lacks_values=True)  # the view then fits any tail


def tail_facts(table: Table, *, changes: str, applied: AppliedThrough, dialect: Dialect) -> str:
    """Return a SELECT of one row, the fields of `TailFacts`; it reads few columns of the tail."""
    floor = f"coalesce(max({history_part(naming.POSITION)}) FILTER (WHERE {naming.OP} = 't'), '')"
    conditions = [lacks_values(), is_late(table, applied, dialect)]
    lacking = " OR ".join(each for each in conditions if each)
    needs = f"count(*) FILTER (WHERE {lacking}) > 0" if table.may_be_unsent else "false"
    in_tail = tail_condition(table, changes, applied, dialect)
    lacks = f"count({naming.UNAVAILABLE}) > 0"
    return f"SELECT count(*), {floor}, {needs}, {lacks} FROM {changes} WHERE {in_tail}"


def may_lack_values(table: Table, tail: TailFacts, applied: AppliedThrough) -> bool:
    """Check whether an event of the tail, or an applied one, may lack a value."""
    return tail.lacks_values or applied.lacked(table)


def view_over_tail(
    table: Table,
    tail: TailFacts,
    *,
    state: str,
    changes: str,
    applied: AppliedThrough,
    dialect: Dialect,
) -> str:
    """Return the SELECT of `current_view` for a tail with these facts.

    `state` and `changes` are the relations that `tail` was read from, at the same snapshots. A
    state has no live row below the truncates that it contains, so its positions are compared only
    if the tail has a later one.
    """
    if not tail.events:
        return applied_view(table, state=state, dialect=dialect)
    if tail.needs_values:
        return current_view(table, state=state, changes=changes, applied=applied, dialect=dialect)
    pending = [ingested_after(applied, dialect), f"{naming.OP} <> 't'"]
    floor = max(tail.floor, applied.floor)
    kept = f"{naming.POSITION} >= {dialect.text(floor)}"
    if floor:
        pending.append(kept)
    events = f"(SELECT * FROM {changes} WHERE {' AND '.join(pending)})"
    # Not a common table expression: DuckDB would materialize what is mentioned twice, and then
    # compute every column of the view for each query.
    is_carried = table.deletes == "soft" or may_lack_values(table, tail, applied)
    carried = table.toastable if is_carried else ()
    folded = f"({folded_rows(table, events, carried, dialect)})"
    is_truncated = tail.floor > applied.floor
    kept = kept if is_truncated else ""
    return overlaid_state(table, state, dialect, folded=folded, kept=kept, carried=carried)
