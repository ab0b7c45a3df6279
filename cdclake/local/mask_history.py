"""History of each column's masks, so that a later mask is refused if clearer text is stored.

A mask applies to values that the connector or a poll still has to send. What the lake stored before
it stays in tables, snapshots, quarantine and topics, next to the masked values of the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cdclake.errors import InputError
from cdclake.plan import Column, Plan

# By `schema.table` and column of the source: the masks that it was declared with, "" for none.
History = Mapping[str, Mapping[str, list[str]]]

_NONE = ""
# Least telling first: nothing, whether there is a value, which values are equal, the month.
_LEVELS = {"null": -2.0, "redact": -1.0, "hash": 0.0, "token": 0.0, "month": 1.0}


def add_to_history(
    history: History, streamed: Plan | None, plan: Plan, elsewhere: str = ""
) -> dict[str, dict[str, list[str]]]:
    """Return the history with the masks of `plan`; `streamed` is the plan before it, if any.

    Raise InputError if the lake has stored text of a column that its mask now hides; `elsewhere`
    names it in the message, if it is not the one on this machine.
    """
    united = {table: {c: list(m) for c, m in columns.items()} for table, columns in history.items()}
    if streamed is not None:  # its lake may be older than the history
        _add(united, streamed)
    _refuse_stored_text(united, plan, elsewhere or "the lake")
    _add(united, plan)
    return united


def _add(history: dict[str, dict[str, list[str]]], plan: Plan) -> None:
    for table in plan.all_tables:
        columns = history.setdefault(table.source, {})
        for column in table.columns:
            for name in column.names:
                masks = columns.setdefault(name, [])
                if _spelled(column) not in masks:
                    masks.append(_spelled(column))


def _refuse_stored_text(history: History, plan: Plan, lake: str) -> None:
    problems = [
        f"{table.source}: column {column.source!r} is now masked with `{_spelled(column)}`, but the"
        f" lake has stored it {_described(earlier)}"
        for table in plan.all_tables
        for column in table.columns
        for earlier in _exposed(column, history.get(table.source, {}))
    ]
    if problems:
        raise InputError(
            f"cannot mask what {lake} already holds: " + "; ".join(problems),
            "undo the change; or erase all data of the lake and its topics with"
            " `cdclake down --purge`, and start over with `cdclake up FILE` (removing the column or"
            " the table erases nothing)",
        )


def _exposed(column: Column, columns: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the earlier mask that exposed the most, if it exposed more than the mask of now."""
    earlier = [mask for name in column.names for mask in columns.get(name, ())]
    weakest = max(earlier, key=_visible, default="null")
    if _visible(weakest) > _visible(_spelled(column)):
        yield weakest


def _spelled(column: Column) -> str:
    if column.mask == "truncate":
        return f"truncate({column.truncate_to})"
    return column.mask or _NONE


def _visible(mask: str) -> float:
    """Rank a mask by what it leaves readable: `truncate(n)` by n, others by a fixed level."""
    if mask == _NONE:
        return float("inf")
    if mask in _LEVELS:
        return _LEVELS[mask]
    return int(mask.removeprefix("truncate(").removesuffix(")"))


def _described(mask: str) -> str:
    return "in clear text" if mask == _NONE else f"with `{mask}`"
