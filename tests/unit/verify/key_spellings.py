"""Histories of a key that the changelog has in two texts: the source's column became more precise.

Cases as in `cases`, each with the table's key type.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from cdclake.iceberg.views import AppliedThrough
from cdclake.plan import Column, Table
from tests.unit.verify.cases import stored
from tests.unit.verify.lakes import event, make_table

# type -> (text before, text after, value of the state)
KEYS: dict[str, tuple[str, str, Any]] = {
    "timestamptz(3)": (
        "2024-01-01T22:04:05.120Z", "2024-01-01T22:04:05.120000Z",
        datetime(2024, 1, 1, 22, 4, 5, 120_000, UTC),
    ),
    "timestamptz(0)": (
        "2024-01-01T22:04:05Z", "2024-01-01T22:04:05.000000Z",
        datetime(2024, 1, 1, 22, 4, 5, 0, UTC),
    ),
    "numeric(10,2)": ("1.50", "1.5000", Decimal("1.50")),
}  # fmt: skip
OTHER: dict[str, str] = {
    "timestamptz(3)": "2024-01-01T22:04:05.121000Z",
    "timestamptz(0)": "2024-01-01T22:04:06.000000Z",
    "numeric(10,2)": "1.5100",
}
BOTH_APPLIED = AppliedThrough(5, carried=("big",))


def spelled_table(kind: str, **facts: Any) -> Table:
    """The table `t` with a key of this type."""
    key = Column(source="id", name="id", type=kind)
    return make_table(columns=(key, *make_table().columns[1:]), **facts)


def histories(kind: str) -> dict[str, tuple[Any, ...]]:
    """Return facts of the table, log, state, what it has applied, and live rows, by name."""
    old, new, value = KEYS[kind]
    created = event("c", 10, 11, id=old, v=1, big="A")
    row = stored(10, 11, id=_stored(value), v=1, big="A")
    updated = event("u", 20, 21, ingested=9, id=new, v=2, big="?")
    deleted = event("d", 30, 31, ingested=9, id=new)
    moved = (
        event("d", 29, 30, ingested=9, id=new),
        event("c", 29, 30, ingested=9, id=OTHER[kind], v=3, big="?"),
    )
    born = event("c", 15, 16, id=old, v=1, big="?")  # of a changed key
    left = event("d", 15, 16, id=OTHER[kind])
    first = event("c", 5, 6, id=OTHER[kind], v=1, big="FIRST")
    none, soft = AppliedThrough(), {"deletes": "soft"}
    return {
        "an update": ({}, [created, updated], [], none, [(value, 2, "A")]),
        "a delete": ({}, [created, deleted], [], none, []),
        "an update and a delete": ({}, [created, updated, deleted], [], none, []),
        "a soft delete": (soft, [created, updated, deleted], [], none, []),
        "the state has the row": (
            {}, [created, updated], [row], BOTH_APPLIED, [(value, 2, "A")],
        ),
        "the state has the deleted row": ({}, [created, deleted], [row], BOTH_APPLIED, []),
        "the key changes": ({}, [created, *moved], [], none, [(_other(kind), 3, "A")]),
        "the key changes, then its text, then the key again": (
            {}, [first, left, born, *moved], [], none, [(_other(kind), 3, "FIRST")],
        ),
    }  # fmt: skip


def _stored(value: Any) -> Any:
    """The value as `lakes.create` takes it: times are microseconds."""
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return value


def _other(kind: str) -> Any:
    if kind.startswith("numeric"):
        return Decimal("1.51")
    return datetime.fromisoformat(OTHER[kind])
