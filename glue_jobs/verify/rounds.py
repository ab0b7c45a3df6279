"""Repeated comparison of differing keys, since source and lake change while they are read."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cdclake.errors import CdcError
from cdclake.jobs.verify.compared_rows import LakeEngine, LakeRows, Place, SourceRows
from cdclake.jobs.verify.first_pass import Sides
from cdclake.jobs.verify.mismatches import Digest, Mismatches
from cdclake.jobs.verify.not_arrived import NotArrived
from cdclake.jobs.verify.report import Example
from cdclake.plan import Table
from cdclake.verify.compare import Row, differing_columns, lake_digest, shown, source_digest
from cdclake.verify.statements import unpacked

MAX_ROUNDS = 5
MAX_EXAMPLES = 10
_PAUSE_S = 0.5
_MAX_WATCHED_KEYS = 5000
_MAX_TEXT_CHARACTERS = 200

# Waits until everything written has arrived, and calls a function repeatedly meanwhile. Returns the
# tables for which it has not, with the reason.
Wait = Callable[[Collection[Table], Callable[[], None]], Mapping[str, NotArrived]]


@dataclass(frozen=True, slots=True)
class Open:
    """Table with keys to compare again."""

    sides: Sides
    candidates: Mismatches


def settle(
    tables: Collection[Open], source: SourceRows, engine: LakeEngine, wait: Wait
) -> tuple[int, dict[str, NotArrived | None]]:
    """Compare until every key is decided, at most `MAX_ROUNDS` times.

    A round reads the source, waits until all of that has arrived, reads the lake, and reads the
    source again. The lake is correct if it shows any state that the source has had meanwhile. For
    keys that change all the time, reading the source during the wait catches more such states. A
    wait that fails ends the rounds of its tables: the other tables' results stay.

    Returns:
        The number of rounds, and by table the reason if its last wait failed.
    """
    reasons: dict[str, NotArrived | None] = {}
    for number in range(1, MAX_ROUNDS + 1):
        undecided = [table for table in tables if len(table.candidates)]
        if not undecided:
            return number - 1, reasons
        for table in undecided:
            table.candidates.begin_round()
        _read_source(undecided, source)
        names = [table.sides.table for table in undecided]
        few = sum(len(table.candidates) for table in undecided) <= _MAX_WATCHED_KEYS
        look = functools.partial(_read_source, undecided, source)
        late, ended = _await(names, wait, look if few else _look_away)
        reasons |= {table.name: late.get(table.name) for table in names}
        _read_lake(undecided, engine)
        _read_source(undecided, source)
        for table in undecided:
            is_last = number == MAX_ROUNDS or table.sides.table.name in ended
            table.candidates.decide(last=is_last)
        time.sleep(_PAUSE_S)
    return MAX_ROUNDS, reasons


def _await(
    tables: Collection[Table], wait: Wait, look: Callable[[], None]
) -> tuple[dict[str, NotArrived], set[str]]:
    """Wait for all changes; return the tables that may lack some, and those whose wait failed.

    Each kind of delivery has its wait, and one that fails concerns only its tables: neither polls
    nor Firehose depend on the stream.
    """
    late: dict[str, NotArrived] = {}
    ended: set[str] = set()
    for delivery in dict.fromkeys(table.delivery for table in tables):
        awaited = [table for table in tables if table.delivery == delivery]
        try:
            late |= wait(awaited, look)
        except CdcError as error:
            late |= {table.name: NotArrived(str(error)) for table in awaited}
            ended.update(table.name for table in awaited)
    return late, ended


def _look_away() -> None:
    """Do nothing during the wait: reading that many keys would take longer than the wait."""


def _read_source(tables: Collection[Open], source: SourceRows) -> None:
    for table in tables:
        table.candidates.look_at_source(_source_digests(table, source))


def _source_digests(table: Open, source: SourceRows) -> Iterator[Digest]:
    side = table.sides.source
    for places in table.candidates.batches():
        for row in source.rows_of(side, places):
            yield row.hash, row.key, source_digest(row, side.columns)


def _read_lake(tables: Collection[Open], engine: LakeEngine) -> None:
    with engine.open([table.sides.table for table in tables]) as lake:
        for table in tables:
            _look_at_lake(table, lake)


def _look_at_lake(table: Open, lake: LakeRows) -> None:
    side = table.sides.lake
    # Listed first: a row read afterwards lacks only listed values, or it has changed meanwhile.
    listed = lake.incomplete(side, table.sides.table)
    table.candidates.note_incomplete((row.hash, row.key, row.texts[-1] or "") for row in listed)
    rows = lake.rows_of(side, _hashes(table.candidates.batches()))
    digests = ((row.hash, row.key, lake_digest(row, side.columns)) for row in rows)
    table.candidates.look_at_lake(digests)


def _hashes(batches: Iterable[list[Place]]) -> Iterator[int]:
    return (hash_ for batch in batches for hash_, _ in batch)


def mark_incomplete(table: Open, source: SourceRows, lake: LakeRows) -> None:
    """Mark the keys that differ only in values that the engine's view cannot look up."""
    lacking = table.candidates.lacking_values()
    sides, names = table.sides, {(hash_, key): waits_for for hash_, key, waits_for in lacking}
    places = list(names)
    of_source = {row.place: row for row in source.rows_of(sides.source, places)}
    of_lake = {row.place: row for row in lake.rows_of(sides.lake, (hash_ for hash_, _ in places))}
    table.candidates.mark_incomplete(
        place
        for place, waits_for in names.items()
        if _lacks_only(waits_for, sides, of_source.get(place), of_lake.get(place))
    )


def _lacks_only(
    waits_for: Collection[str], sides: Sides, source: Row | None, lake: Row | None
) -> bool:
    """Return whether the rows differ only where the lake's has NULL for one of these columns.

    True if the source's row is gone by now.
    """
    if source is None:
        return True
    if lake is None:
        return False
    columns = sides.source.columns
    nulls = {c.name for c, text in zip(columns, lake.texts, strict=True) if text is None}
    differing = (column.name for column in differing_columns(source.texts, lake.texts, columns))
    return all(name in waits_for and name in nulls for name in differing)


def examples(table: Open, source: SourceRows, lake: LakeRows) -> list[Example]:
    """Return the first differing keys, with both sides' current values."""
    chosen = table.candidates.examples(MAX_EXAMPLES)
    places = [(hash_, key) for hash_, key, _ in chosen]
    sides = table.sides
    of_source = {row.key: row for row in source.rows_of(sides.source, places)}
    hashes = [hash_ for hash_, _ in places]
    of_lake = {row.key: row for row in lake.rows_of(sides.lake, hashes)}
    return [
        _example(sides, key, kind, of_source.get(key), of_lake.get(key)) for _, key, kind in chosen
    ]


def _example(sides: Sides, key: str, kind: str, source: Row | None, lake: Row | None) -> Example:
    columns = sides.source.columns
    named = [column for column in columns if column.in_key]
    wanted = columns
    if source is not None and lake is not None:
        wanted = differing_columns(source.texts, lake.texts, columns)
    names = {column.name for column in wanted}
    return Example(
        key={
            column.name: None if text is None else column.show(text)
            for column, text in zip(named, unpacked(key), strict=True)
        },
        kind=kind,
        columns=[column.name for column in wanted],
        source=None if source is None else _short(shown(source.texts, columns, names)),
        lake=None if lake is None else _short(shown(lake.texts, columns, names)),
    )


def _short(values: Mapping[str, Any]) -> dict[str, str | None]:
    return {
        name: f"{text[:_MAX_TEXT_CHARACTERS]}..."
        if text and len(text) > _MAX_TEXT_CHARACTERS
        else text
        for name, text in values.items()
    }
