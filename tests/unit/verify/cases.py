"""Histories of one table and what must come of them; run by every engine that has the templates."""

from __future__ import annotations

from typing import Any

from cdclake import naming
from cdclake.debezium.position import Position, history_part
from cdclake.iceberg.views import AppliedThrough
from tests.unit.verify.lakes import event


def stored(
    prev: int,
    lsn: int,
    *,
    deleted: bool = False,
    value_positions: dict[str, str] | None = None,
    **values: Any,
) -> dict[str, Any]:
    """A row of the state."""
    return {
        **event("d" if deleted else "c", prev, lsn, **values),
        naming.DELETED: deleted,
        naming.VALUE_POSITIONS: value_positions,
    }


def at(prev: int, lsn: int) -> str:
    """The position of such an event."""
    return str(Position(1, prev, 1, lsn, lsn))


ROW: dict[str, Any] = {"id": 1, "v": 1, "big": "A"}
C10 = event("c", 10, 11, **ROW)
APPLIED_10 = stored(10, 11, **ROW)
SOFT = {"deletes": "soft"}

# name -> (facts of the table, log, state, applied, live rows)
CASES: dict[str, tuple[Any, ...]] = {
    "an insert": ({}, [C10], [], AppliedThrough(), [(1, 1, "A")]),
    "order is by position, not by arrival": (
        {},
        [event("u", 30, 5, id=1, v=3, big="C"), C10, event("u", 20, 99, id=1, v=2, big="B")],
        [], AppliedThrough(), [(1, 3, "C")],
    ),
    "a delete wins over what was before, wherever it stands": (
        {}, [event("d", 20, 21, id=1), C10], [], AppliedThrough(), [],
    ),
    "the straddler of a snapshot": (
        {},
        [
            event("r", 0, 130, phase=0, id=1, v=1, big="old"),
            event("u", 0, 100, id=1, v=2, big="new"),
        ],
        [], AppliedThrough(), [(1, 2, "new")],
    ),
    "duplicates change nothing": ({}, [C10, C10, C10], [], AppliedThrough(), [(1, 1, "A")]),
    "an unavailable value keeps the older one": (
        {}, [C10, event("u", 30, 31, id=1, v=3, big="?")], [], AppliedThrough(), [(1, 3, "A")],
    ),
    "a late real value is newer than the one that was carried": (
        {}, [C10, event("u", 30, 31, id=1, v=3, big="?"), event("u", 20, 21, id=1, v=2, big="B")],
        [], AppliedThrough(), [(1, 3, "B")],
    ),
    "the same, with the state holding the carried value": (
        {}, [event("u", 20, 21, ingested=9, id=1, v=2, big="B")],
        [stored(30, 31, value_positions={"big": at(10, 11)}, id=1, v=3, big="A")],
        AppliedThrough(5, carried=("big",)), [(1, 3, "B")],
    ),
    "a carried value older than the state's": (
        {}, [event("u", 20, 21, ingested=9, id=1, v=2, big="B")],
        [stored(30, 31, id=1, v=3, big="C")], AppliedThrough(5), [(1, 3, "C")],
    ),
    "a real NULL is a value": (
        {}, [C10, event("u", 20, 21, id=1, v=2, big=None), event("u", 30, 31, id=1, v=3, big="?")],
        [], AppliedThrough(), [(1, 3, None)],
    ),
    "what is applied is not read again": (
        {}, [event("u", 90, 91, ingested=5, id=1, v=9, big="Z")], [APPLIED_10], AppliedThrough(5),
        [(1, 1, "A")],
    ),
    "a late event does not revive a tombstone": (
        {}, [event("u", 20, 21, ingested=9, id=1, v=2, big="B")],
        [stored(30, 31, deleted=True, id=1)], AppliedThrough(5), [],
    ),
    "a key comes back": (
        {}, [event("c", 40, 41, ingested=9, id=1, v=4, big="D")],
        [stored(30, 31, deleted=True, id=1)], AppliedThrough(5), [(1, 4, "D")],
    ),
    "a truncate takes what is below it, in state and log": (
        {},
        [
            event("t", 20, 25, ingested=9), event("c", 15, 16, ingested=9, id=2, v=2, big="B"),
            event("c", 30, 31, ingested=9, id=3, v=3, big="C"),
        ],
        [APPLIED_10], AppliedThrough(5), [(3, 3, "C")],
    ),
    "an applied truncate's floor still counts": (
        {}, [event("c", 15, 16, ingested=9, id=2, v=2, big="B")], [],
        AppliedThrough(5, history_part(at(20, 25))), [],
    ),
    "soft deletes are hidden": (
        SOFT, [event("d", 20, 21, ingested=9, id=1)], [APPLIED_10], AppliedThrough(5), [],
    ),
    "a soft delete that is applied": (
        SOFT, [], [stored(20, 21, deleted=True, id=1, v=1, big="A")], AppliedThrough(5), [],
    ),
    "a whole-row identity carries nothing": (
        {"replica_identity": "full"}, [C10, event("u", 30, 31, id=1, v=3, big="B")], [],
        AppliedThrough(), [(1, 3, "B")],
    ),
}  # fmt: skip
