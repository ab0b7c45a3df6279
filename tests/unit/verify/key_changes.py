"""Histories in which a key changes while a value does not: cases as in `cases`.

The delete and the creation of such a change stand at one position here: only Kafka's partition, of
which a position knows nothing, tells them apart.
"""

from __future__ import annotations

from typing import Any

from cdclake import naming
from cdclake.iceberg.views import AppliedThrough
from cdclake.plan import Column
from tests.unit.verify.cases import APPLIED_10, C10, SOFT, at, stored
from tests.unit.verify.lakes import event, make_table


def moved(
    lsn: int, old: int, new: int, *, ingested: tuple[int, int] = (9, 9), **values: Any
) -> list[dict[str, Any]]:
    """An UPDATE of the key: the old one's delete and the new one's creation, as ingested."""
    taken = {"v": new, "big": "?", **values}
    return [
        event("d", lsn - 1, lsn, ingested=ingested[0], id=old),
        event("c", lsn - 1, lsn, ingested=ingested[1], id=new, **taken),
    ]


TWO_VALUES = {
    "columns": (*make_table().columns, Column(source="wide", name="wide", type="text")),
}
GONE_1 = stored(20, 21, deleted=True, id=1)
MOVED_1 = (GONE_1, stored(20, 21, value_positions={"big": ""}, id=2, v=2))
THROUGH_20 = AppliedThrough(5, carried=("big",), newest=at(20, 21))
# Another row had the new key, and was deleted.
OTHER = event("c", 10, 12, id=2, v=9, big="OTHER")
GONE_OTHER = stored(
    15, 16, deleted=True, value_positions={"big": at(10, 12)}, id=2, v=9, big="OTHER"
)

# name -> (facts of the table, log, state, applied, live rows)
KEY_CHANGES: dict[str, tuple[Any, ...]] = {
    "a changed key whose value is only in what is applied": (
        {}, [C10, *moved(21, 1, 2)], [APPLIED_10], AppliedThrough(5), [(2, 2, "A")],
    ),
    "a changed key whose value is in the tail": (
        {}, [event("c", 10, 11, ingested=9, id=1, v=1, big="B"), *moved(21, 1, 2)],
        [], AppliedThrough(5), [(2, 2, "B")],
    ),
    "a changed key whose delete is applied already": (
        {}, [C10, *moved(21, 1, 2, ingested=(5, 9))], [GONE_1], AppliedThrough(5), [(2, 2, "A")],
    ),
    "a changed key whose delete is not there yet": (
        {}, [C10, moved(21, 1, 2)[1]], [APPLIED_10], AppliedThrough(5),
        [(1, 1, "A"), (2, 2, None)],
    ),
    "a chain of three changed keys": (
        {}, [C10, *moved(21, 1, 2), *moved(31, 2, 3), *moved(41, 3, 4)],
        [APPLIED_10], AppliedThrough(5), [(4, 4, "A")],
    ),
    **{
        f"a chain of {length} changed keys": (
            {}, [C10, *(e for key in range(1, length + 1)
                        for e in moved(11 + 10 * key, key, key + 1))],
            [APPLIED_10], AppliedThrough(5), [(length + 1, length + 1, "A")],
        )
        for length in (5, 12)
    },
    "a chain of which the first part is applied": (
        {}, [C10, *moved(21, 1, 2, ingested=(2, 2)), *moved(31, 2, 3)],
        [GONE_1, stored(20, 21, id=2, v=2, big="A")], AppliedThrough(5), [(3, 3, "A")],
    ),
    "a chain that takes a value of its middle along": (
        {}, [C10, *moved(21, 1, 2), event("u", 30, 31, ingested=9, id=2, v=2, big="B"),
             *moved(41, 2, 3)],
        [APPLIED_10], AppliedThrough(5), [(3, 3, "B")],
    ),
    "a changed key with a NULL that was sent": (
        {}, [C10, event("u", 15, 16, id=1, v=1, big=None), *moved(21, 1, 2)],
        [stored(15, 16, id=1, v=1, big=None)], AppliedThrough(5), [(2, 2, None)],
    ),
    "a changed key whose row is updated with the value still unchanged": (
        {}, [C10, *moved(21, 1, 2), event("u", 30, 31, ingested=9, id=2, v=3, big="?")],
        [APPLIED_10], AppliedThrough(5), [(2, 3, "A")],
    ),
    "a changed key whose row has a new value since": (
        {}, [C10, *moved(21, 1, 2), event("u", 30, 31, ingested=9, id=2, v=3, big="C")],
        [APPLIED_10], AppliedThrough(5), [(2, 3, "C")],
    ),
    "a key of two rows, one after the other, gives the later row's value": (
        {}, [C10, *moved(21, 1, 2), event("u", 30, 31, ingested=9, id=2, v=2, big="B"),
             *moved(41, 2, 1), *moved(51, 1, 3)],
        [APPLIED_10], AppliedThrough(5), [(3, 3, "B")],
    ),
    "two keys that change places": (
        {}, [C10, event("c", 10, 12, id=2, v=2, big="B"),
             *moved(21, 1, 3), *moved(31, 2, 1), *moved(41, 3, 2)],
        [APPLIED_10, stored(10, 12, id=2, v=2, big="B")], AppliedThrough(5),
        [(1, 1, "B"), (2, 2, "A")],
    ),
    "a key that a moved row left and another row takes and leaves": (
        {}, [C10, *moved(21, 1, 2), *moved(31, 2, 3),
             event("c", 40, 41, ingested=9, id=2, v=2, big="X"),
             *moved(51, 2, 4), *moved(61, 3, 5)],
        [APPLIED_10], AppliedThrough(5), [(4, 4, "X"), (5, 5, "A")],
    ),
    "a replayed insert has a value that an applied key change lacks": (
        {}, [event("c", 10, 11, ingested=9, id=1, v=1, big="A"),
             *moved(21, 1, 2, ingested=(2, 2))],
        [*MOVED_1], THROUGH_20, [(2, 2, "A")],
    ),
    "a replayed update has a newer value than an applied key change was given": (
        {}, [C10, event("u", 15, 16, ingested=9, id=1, v=1, big="B"),
             *moved(21, 1, 2, ingested=(2, 2))],
        [GONE_1, stored(20, 21, id=2, v=2, big="A")], THROUGH_20, [(2, 2, "B")],
    ),
    "values that lie differently far back": (
        TWO_VALUES, [{**C10, "wide": "W"}, *moved(21, 1, 2, big="B", wide="?"),
                     *moved(31, 2, 3, wide="?")],
        [{**APPLIED_10, "wide": "W"}], AppliedThrough(5), [(3, 3, "B", "W")],
    ),
    "one value sent with the changed key and one not": (
        TWO_VALUES, [{**C10, "wide": "W"}, *moved(21, 1, 2, big=None, wide="?")],
        [{**APPLIED_10, "wide": "W"}], AppliedThrough(5), [(2, 2, None, "W")],
    ),
    "a changed key under soft deletes": (
        SOFT, [C10, *moved(21, 1, 2), *moved(31, 2, 3)], [APPLIED_10], AppliedThrough(5),
        [(3, 3, "A")],
    ),
    "a changed key that a deleted row had, whose tombstone keeps its value": (
        SOFT, [C10, OTHER, event("d", 15, 16, id=2), *moved(21, 1, 2)],
        [APPLIED_10, GONE_OTHER], AppliedThrough(5), [(2, 2, "A")],
    ),
    "a changed key that a deleted row had, with all of its events in the tail": (
        SOFT, [C10, {**OTHER, naming.INGESTED_AT: 9}, event("d", 15, 16, ingested=9, id=2),
               *moved(21, 1, 2)],
        [APPLIED_10], AppliedThrough(5), [(2, 2, "A")],
    ),
    "a changed key that a row had which a resync deleted": (
        {}, [C10, OTHER, event("d", 15, 16, id=2, big="?"), *moved(21, 1, 2)],
        [APPLIED_10, GONE_OTHER], AppliedThrough(5), [(2, 2, "A")],
    ),
    "a changed key that a deleted row had, applied since the stamp": (
        SOFT, [C10, OTHER, event("d", 15, 16, id=2), *moved(21, 1, 2)],
        [GONE_1, stored(20, 21, id=2, v=2, big="A")], AppliedThrough(5), [(2, 2, "A")],
    ),
    "a row below a truncate stays away although its key changed": (
        {}, [C10, *moved(21, 1, 2), event("t", 30, 31, ingested=9)], [APPLIED_10],
        AppliedThrough(5), [],
    ),
}  # fmt: skip
