"""`verify --deep` over small lakes in memory: a right one, and one with each possible fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from cdclake import naming
from cdclake.debezium.position import Position
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.rebuilt_view import rebuilt_view
from cdclake.iceberg.views import AppliedThrough, history_view
from cdclake.jobs.reader.relations import rebuilt_rows
from cdclake.jobs.verify.deep_comparison import DeepComparison, compare_deep
from cdclake.plan import Column
from tests.unit.verify.cases import at, stored
from tests.unit.verify.lakes import create, event, make_table
from tests.unit.verify.test_reader import THREE

TABLE = make_table()
LOG = [
    event("c", 10, 11, id=1, v=1, big="A"),
    event("u", 20, 21, id=1, v=2, big="?"),
    event("c", 30, 31, id=2, v=7, big="B"),
    event("c", 40, 41, id=3, v=8, big="C"),
    event("d", 50, 51, id=3),
]
STATE = [
    stored(20, 21, id=1, v=2, big="A", value_positions={"big": at(10, 11)}),
    stored(30, 31, id=2, v=7, big="B"),
    stored(50, 51, deleted=True, id=3),
]


def _compared(
    log: list[dict[str, Any]], state: list[dict[str, Any]], **facts: Any
) -> DeepComparison:
    table = make_table(**facts)
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        create(session, table, log, state)
        applied = f"SELECT * FROM {table.changes}"
        rebuilt = rebuilt_view(table, changes=applied, floor="", dialect=DUCKDB)
        session.execute(f"CREATE VIEW {naming.rebuilt_name(table.name)} AS {rebuilt}")
        history = history_view(table, changes=table.changes, dialect=DUCKDB)
        session.execute(f"CREATE VIEW {naming.history_name(table.name)} AS {history}")
        return compare_deep(session, table)


def _kinds(found: DeepComparison) -> dict[str, int]:
    counts = {name: getattr(found, name) for name in DeepComparison.__slots__ if name != "first"}
    return {name: count for name, count in counts.items() if count and name != "rebuilt_rows"}


def test_consistent_table_has_no_finding() -> None:
    found = _compared(LOG, STATE)
    assert (found.ok, found.rebuilt_rows, found.first) == (True, 2, [])


def test_altered_state_row_is_different() -> None:
    found = _compared(LOG, [{**STATE[0], "v": 99}, *STATE[1:]])
    assert not found.ok
    assert _kinds(found) == {"different": 1, "history_different": 1}
    assert (found.first[0].key, found.first[0].columns) == ({"id": "1"}, ["v"])


def test_altered_carried_value_is_different() -> None:
    """No event at the row's own position has it: the history cannot tell."""
    assert _kinds(_compared(LOG, [{**STATE[0], "big": "Z"}, *STATE[1:]])) == {"different": 1}


def test_value_that_no_event_has_is_not_compared() -> None:
    assert _compared(LOG[1:], STATE).ok


def test_altered_position_is_different() -> None:
    moved = {**STATE[1], naming.POSITION: str(Position(1, 39, 1, 39, 39))}
    found = _compared(LOG, [STATE[0], moved, STATE[2]])
    assert _kinds(found) == {"different": 1, "history_missing": 1}


def test_lost_and_revived_state_rows_are_found() -> None:
    revived = stored(40, 41, id=3, v=8, big="C")
    found = _compared(LOG, [STATE[0], revived])
    assert _kinds(found) == {"missing": 1, "extra": 1}
    assert {(each.kind, each.key["id"]) for each in found.first} == {
        ("missing", "2"),
        ("extra", "3"),
    }


def test_lost_event_is_found() -> None:
    found = _compared([*LOG[:2], *LOG[3:]], STATE)
    assert _kinds(found) == {"extra": 1, "history_missing": 1}
    assert found.first[0].key == {"id": "2"}


def test_doubled_event_is_found_despite_other_offset() -> None:
    found = _compared([*LOG, event("c", 30, 31, id=2, v=7, big="B", offset=77)],
                      [STATE[0], {**STATE[1], naming.POSITION: str(Position(1, 30, 1, 31, 77))},
                       STATE[2]])  # fmt: skip
    assert _kinds(found) == {"doubled_events": 1}
    assert found.first[0].key == {"id": "2"}


def test_event_that_firehose_delivered_twice_is_no_finding() -> None:
    doubled = [*LOG, LOG[2]]
    assert _compared(doubled, STATE, delivery="firehose").ok
    assert not _compared(doubled, STATE).ok


def test_events_of_the_job_itself_have_no_identity() -> None:
    swept = {**event("d", 60, 61, id=9), naming.PARTITION: -1}
    assert _compared([*LOG, swept, swept], STATE).ok


def test_doubled_state_row_is_found() -> None:
    assert _kinds(_compared(LOG, [*STATE, STATE[1]])) == {"doubled_rows": 1}


@pytest.mark.parametrize("name", ["position", "kind", "columns"])
def test_a_key_may_have_any_column_name(name: str) -> None:
    _, *others = TABLE.columns
    columns = (Column(source=name, name=name, type="integer"), *others)

    def renamed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{name if key == "id" else key: v for key, v in row.items()} for row in rows]

    log = renamed([*LOG, event("c", 30, 31, id=2, v=7, big="B")])
    state = renamed([{**STATE[0], "v": 99}, STATE[1], STATE[1]])
    found = _compared(log, state, key=(name,), columns=columns)
    kinds = {"different": "1", "history_different": "1", "doubled_rows": "2", "doubled_events": "2"}
    assert {each.kind: each.key for each in found.first} == {
        kind: {name: key} for kind, key in kinds.items()
    }
    assert all(Position.parse(each.position or "") for each in found.first)


@pytest.fixture
def session() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        create(opened, TABLE, [*LOG[:2], event("c", 30, 31, ingested=9, id=2, v=7, big="B")])
        yield opened


def test_unapplied_events_are_left_out(session: duckdb.DuckDBPyConnection) -> None:
    select = rebuilt_rows(TABLE, THREE, AppliedThrough(5), schema="main")
    assert session.execute(f"SELECT id, big FROM ({select})").fetchall() == [(1, "A")]
