"""Where the lake says otherwise than the audit of its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.model_lake.audit import Change, Place, Values
from tests.model_lake.log import NOTHING, Event, StateRow
from tests.model_lake.shapes import ALL_SHAPES, LARGE, VALUES, Shape

_SHAPES = {shape.name: shape for shape in ALL_SHAPES}
Differences = dict[Place, str]  # what is wrong with a key


def compare_logs(
    truth: Mapping[Place, Sequence[Change]],
    logs: Mapping[Place, Sequence[Event]],
    snapshotted: frozenset[Place] = frozenset(),
) -> Differences:
    """What the logs have otherwise than the changes were.

    The logs of `snapshotted` keys may begin with a row that a snapshot read, instead of the changes
    that had led to it.
    """
    found: Differences = {}
    for place in sorted({*truth, *logs}):
        changes, events = truth.get(place, ()), logs.get(place, ())
        try:
            _check_log(_SHAPES[place[0]], changes, events, place in snapshotted)
        except _Wrong as wrong:
            found[place] = str(wrong)
    return found


class _Wrong(Exception):
    """What is wrong with one key, in words."""


def _check_log(
    shape: Shape, changes: Sequence[Change], events: Sequence[Event], snapshotted: bool
) -> None:
    streamed = [event for event in events if not event.is_read]
    unseen = len(changes) - len(streamed)
    # What was emptied before the snapshot counts for keys that came up after it, too.
    is_begun = snapshotted or all(change.op == "t" for change in changes[:unseen])
    if unseen < 0 or (unseen > 0 and not is_begun):
        raise _Wrong(f"the log has {len(streamed)} events of {len(changes)} changes")
    if len({event.identity for event in events}) < len(events):
        raise _Wrong("the log holds an event twice")
    if unseen and changes[unseen - 1].after is not None and not _may_begin_with(events):
        raise _Wrong("no snapshot read its row, and changes before it are not in the log")
    done = unseen
    for event in events:
        if event.partition < 0:
            raise _Wrong(f"the stream wrote an {event.op} of its own at {event.position}")
        if event.is_read:
            _check_read(event, changes[done - 1].after if done else None)
        else:
            _check_event(shape, event, changes[done])
            done += 1


def _may_begin_with(events: Sequence[Event]) -> bool:
    """Whether a key's log may begin so, though the key had a row when the snapshot began.

    The snapshot read it; or a truncate came first, which takes the rows from snapshots that are
    older than it, too (PostgreSQL's documentation, 13.6: Caveats).
    """
    return bool(events) and (events[0].is_read or events[0].op == "t")


def _check_read(event: Event, row: Values | None) -> None:
    if event.unavailable or event.values != row:
        raise _Wrong(f"r at {event.position} has {event.values}, its row was {row} by then")


def _check_event(shape: Shape, event: Event, change: Change) -> None:
    said = f"{event.op} at {event.position} has {event.values}"
    if event.op != change.op:
        raise _Wrong(f"{said}, the source did {change.op} {change.after}")
    if event.op in "dt":
        expected = change.before if shape.sends_whole_rows and event.op == "d" else NOTHING
        if event.values != expected or event.unavailable:
            raise _Wrong(f"{said}, expected {expected}")
        return
    assert change.after is not None
    before = change.before or NOTHING
    for name, sent, old, new in zip(VALUES, event.values, before, change.after, strict=True):
        if name in event.unavailable:
            if name not in LARGE or new is None or old != new or shape.sends_whole_rows:
                raise _Wrong(f"{said} without {name}, which was {old} and became {new}")
        elif sent != new:
            raise _Wrong(f"{said}; {name} was {old} and became {new}")


def compare_earlier(
    truth: Mapping[Place, Sequence[Change]],
    logs: Mapping[Place, Sequence[Event]],
    rows: Sequence[Sequence[str | None]],
    committed_at: int,
) -> Differences:
    """Compare the answer to `earlier_query` with the source's rows as of that commit time.

    The audit has no commit times: a key's changes and streamed events are the same, in one order.
    """
    earlier: dict[Place, list[Values]] = {}
    for table, key, *values in rows:
        earlier.setdefault((str(table), str(key)), []).append(tuple(values))
    found: Differences = {}
    for place in sorted({*truth, *earlier}):
        row = _row_as_of(truth.get(place, ()), logs.get(place, ()), committed_at)
        expected = [] if row is None else [row]
        if earlier.get(place, []) != expected:
            found[place] = f"as of {committed_at}: {earlier.get(place)}, expected {expected}"
    return found


def _row_as_of(
    changes: Sequence[Change], events: Sequence[Event], committed_at: int
) -> Values | None:
    streamed = [event for event in events if not event.is_read]
    done = len(changes) - sum(event.committed_at > committed_at for event in streamed)
    return changes[done - 1].after if done > 0 else None


def compare_states(
    truth: Mapping[Place, Sequence[Change]],
    logs: Mapping[Place, Sequence[Event]],
    states: Mapping[Place, Sequence[StateRow]],
) -> Differences:
    """What the states have otherwise than the source has it in the end.

    A row that was gone before the lake read its first one left nothing in the logs, and nothing to
    keep where deletes are soft.
    """
    found: Differences = {}
    for place in sorted({*truth, *states}):
        shape, rows = _SHAPES[place[0]], states.get(place, ())
        keeps_deleted = shape.keeps_deleted and any(e.op != "t" for e in logs.get(place, ()))
        try:
            _check_rows(truth.get(place, ()), rows, keeps_deleted)
        except _Wrong as wrong:
            found[place] = str(wrong)
    return found


def _check_rows(changes: Sequence[Change], rows: Sequence[StateRow], keeps_deleted: bool) -> None:
    if len(rows) > 1:
        raise _Wrong(f"the state has {len(rows)} rows of the key")
    last = changes[-1] if changes else Change("t", None, None)
    expected = last.after
    if expected is None and keeps_deleted:
        expected = last.before
    if not rows:
        if expected is not None:
            raise _Wrong(f"the state has no row, expected {expected}")
        return
    [row] = rows
    if row.deleted != (last.after is None) or row.values != (expected or NOTHING):
        raise _Wrong(f"the state has {row}, expected {expected}, last {last.op}")
    if row.missing:
        raise _Wrong(f"the state lacks {', '.join(row.missing)}: {row}")
