"""The catalogue's cases as of every commit time, from the changelog alone, in DuckDB."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest

from cdclake import naming
from cdclake.debezium.position import Position, history_part, snapshot_start
from cdclake.errors import InputError
from cdclake.iceberg.as_of_view import as_of_view, first_complete
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.reader.as_of import floor_as_of
from cdclake.plan import Table
from tests.model import reference
from tests.model.lake_rows import applied, log_row
from tests.model.reference import Event
from tests.model.scenarios import Case, Live, Place, Record, cases
from tests.model.shapes import plan_with, shaped_table
from tests.unit.verify.lakes import create, make_table

HOUR = 3_600_000_000
FIRST = Place()


@pytest.fixture(scope="module")
def session() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        yield session


def events_of(case: Case, place: Place = FIRST) -> list[Event]:
    """The case's events, each once, in the source's order."""
    table = shaped_table(case.shape)
    records: list[Record] = [record for batch in case.records(place) for record in batch]
    read = reference.read_all(records, table, plan_with(table).placeholder)[0]
    return reference.in_order(reference.once(reference.with_sweeps(read)))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_case(session: duckdb.DuckDBPyConnection, case: Case) -> None:
    """At each of its commit times, and just before the first, the rows are those of then."""
    table, events = shaped_table(case.shape), events_of(case)
    committed = commit_times(events)
    log = [
        {**log_row(event, table, 1), naming.COMMITTED_AT: at}
        for event, at in zip(events, committed, strict=True)
    ]
    create(session, table, log)
    for moment in sorted({0, *committed}):
        known = [event for event, at in zip(events, committed, strict=True) if at <= moment]
        view = as_of_view(table, changes="t_changes", moment=DUCKDB.instant(moment), dialect=DUCKDB)
        assert rows(session, view, len(table.key)) == expected(known, case), moment


def commit_times(events: list[Event]) -> list[int]:
    """The commit times, an hour apart by transaction."""
    found: list[int] = []
    last: Any = None
    for event in events:
        transaction = event.order[:3]
        before = found[-1] if found else 0
        found.append(before if transaction == last else before + HOUR)
        last = transaction
    return found


def expected(events: list[Event], case: Case) -> Live:
    return reference.live(reference.replay(events, shaped_table(case.shape)))


def rows(session: duckdb.DuckDBPyConnection, view: str, keys: int) -> Live:
    def as_sent(value: object) -> object:
        return base64.b64encode(value).decode() if isinstance(value, bytes) else value

    return {
        row[:keys]: tuple(as_sent(value) for value in row[keys:])
        for row in session.execute(view).fetchall()
    }


def test_the_first_snapshot_says_since_when_rows_are_complete(
    session: duckdb.DuckDBPyConnection,
) -> None:
    case = next(each for each in cases() if any(e.op == "r" for e in events_of(each)))
    table, events = shaped_table(case.shape), events_of(case)
    log = [
        {**log_row(event, table, 1), naming.COMMITTED_AT: number * HOUR}
        for number, event in enumerate(events, 1)
    ]
    create(session, table, log)
    read = [number for number, event in enumerate(events, 1) if event.op == "r"]
    assert complete_since(session, table) == max(read) * HOUR


READ = {naming.OP: "r", naming.PHASE: 0, naming.PREV_COMMIT_LSN: 0}
CHANGE = {naming.OP: "u", naming.PHASE: 1, naming.PREV_COMMIT_LSN: 40}
RESYNC = {naming.OP: "r", naming.PHASE: 0, naming.PREV_COMMIT_LSN: 80}
POLL = {naming.OP: "r", naming.PHASE: 2, naming.PREV_COMMIT_LSN: 40}
SECOND = {naming.EPOCH: 2}  # after a lost slot


@pytest.mark.parametrize(
    ("log", "since"),
    [
        ([(1, 1, READ), (1, 50, CHANGE), (1, 900, RESYNC)], 1),
        ([(1, 1, READ), (1, 900, RESYNC), (2, 901, RESYNC)], 1),
        ([(1, 1, READ), (2, 2, READ), (1, 70, SECOND | READ), (3, 71, SECOND | READ)], 2),
        ([(1, 100, RESYNC), (2, 110, RESYNC), (1, 150, CHANGE), (1, 900, RESYNC)], 110),
        ([(1, 100, RESYNC), (3, 150, CHANGE | {naming.OP: "c"}), (3, 900, RESYNC)], 100),
        ([(1, 500, POLL), (2, 500, POLL), (1, 600, POLL)], 500),
        ([(1, 50, CHANGE)], None),
        ([], None),
    ],
)  # fmt: skip
def test_rows_are_complete_since_the_first_snapshot_or_poll(
    session: duckdb.DuckDBPyConnection, log: list[tuple[int, int, dict[str, Any]]], since: int
) -> None:
    table = make_table()
    rows = [
        {
            "id": key, naming.EPOCH: 1, naming.COMMITTED_AT: at, **facts,
            naming.POSITION: str(
                Position(
                    facts.get(naming.EPOCH, 1), facts[naming.PREV_COMMIT_LSN],
                    facts[naming.PHASE], at, 0,
                )
            ),
        }
        for key, at, facts in log
    ]  # fmt: skip
    create(session, table, rows)
    assert complete_since(session, table) == since


def complete_since(session: duckdb.DuckDBPyConnection, table: Table) -> int | None:
    query = first_complete(table, changes="SELECT * FROM t_changes", dialect=DUCKDB)
    [(micros,)] = session.execute(f"SELECT epoch_us(since) FROM ({query}) AS q(since)").fetchall()
    return None if micros is None else int(micros)


def swept(event: Event) -> bool:
    """Return True for a sweep; a changelog that Firehose writes has none."""
    return event.op == "t" and event.order[1:] == (0, 0, 0)


@pytest.mark.parametrize(
    "case",
    [case for case in cases() if any(map(swept, events_of(case)))],
    ids=lambda case: case.id,
)
def test_a_changelog_without_sweeps(session: duckdb.DuckDBPyConnection, case: Case) -> None:
    """The floor is in the state's stamp alone, and holds since the snapshot was read."""
    table, events = shaped_table(case.shape), events_of(case)
    committed = commit_times(events)
    floor = applied(events, 1).floor
    log = [
        {**log_row(event, table, 1), naming.COMMITTED_AT: at}
        for event, at in zip(events, committed, strict=True)
        if not swept(event)
    ]
    create(session, table, log)
    for moment in sorted({0, *committed}):
        known = [event for event, at in zip(events, committed, strict=True) if at <= moment]
        since = floor_as_of(session, table, "t_changes", floor, None, moment)
        view = as_of_view(
            table, changes="t_changes", moment=DUCKDB.instant(moment), dialect=DUCKDB, floor=since
        )
        assert rows(session, view, len(table.key)) == expected(known, case), moment


BEING_READ = "a new snapshot of t was being read"


@pytest.mark.parametrize(
    ("hour", "known", "found"),
    [
        pytest.param(2, True, [1, 2], id="before the snapshot"),
        pytest.param(3, True, BEING_READ, id="while it was read"),
        pytest.param(4, True, [2, 3], id="after its last row"),
        pytest.param(9, True, [2, 3], id="long after"),
        pytest.param(2, False, [1, 2], id="before a snapshot that is not complete"),
        pytest.param(9, False, BEING_READ, id="in one that is not complete"),
    ],
)
def test_rows_that_were_deleted_between_epochs(
    session: duckdb.DuckDBPyConnection, hour: int, known: bool, found: list[int] | str
) -> None:
    """Key 1 was deleted while there was no slot; the second snapshot took hours 3 and 4."""
    table = shaped_table("plain")
    orders = {1: [(1, 1), (1, 2)], 2: [(3, 2), (4, 3)]}
    log = [
        {**log_row(read(epoch, key), table, 1), naming.COMMITTED_AT: at * HOUR}
        for epoch, rows_read in orders.items()
        for at, key in rows_read
    ]
    create(session, table, log)
    floor = history_part(log[-1][naming.POSITION]) if known else ""

    def keys() -> list[int]:
        at = hour * HOUR
        since = floor_as_of(session, table, "t_changes", floor, None, at)
        view = as_of_view(
            table, changes="t_changes", moment=DUCKDB.instant(at), dialect=DUCKDB, floor=since
        )
        return sorted(key for (key,) in rows(session, view, 1))

    if isinstance(found, str):
        with pytest.raises(InputError, match=found):
            keys()
    else:
        assert keys() == found


@pytest.mark.parametrize(("hour", "found"), [(1, 1), (4, 1), (5, 0), (6, 0)])
def test_a_table_that_was_empty_at_the_snapshot(
    session: duckdb.DuckDBPyConnection, hour: int, found: int
) -> None:
    """No row says when it was read: the state has had the floor since the fifth hour."""
    table = shaped_table("plain")
    create(session, table, [{**log_row(read(1, 1), table, 1), naming.COMMITTED_AT: HOUR}])
    floor, at = history_part(str(snapshot_start(2, 130))), hour * HOUR
    swept_at = datetime(1970, 1, 1, 5, tzinfo=UTC)
    since = floor_as_of(session, table, "t_changes", floor, swept_at, at)
    view = as_of_view(
        table, changes="t_changes", moment=DUCKDB.instant(at), dialect=DUCKDB, floor=since
    )
    assert len(rows(session, view, 1)) == found


def read(epoch: int, key: int) -> Event:
    """A row of an epoch's snapshot."""
    return Event(
        op="r", key=(key,), order=(epoch, 0, 0, 130), tx=1, partition=0, offset=10 * epoch + key,
        values={"v": "a", "big": "A"}, missing=frozenset(),
    )  # fmt: skip
