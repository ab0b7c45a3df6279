"""The catalogue's cases by `<t>_current` in DuckDB, however much of them is applied already."""

import base64
from typing import Any

import duckdb
import pytest

from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.tail_facts import TailFacts, view_over_tail
from cdclake.iceberg.views import current_view
from cdclake.jobs.reader.tail import read_tail
from cdclake.plan import Table
from tests.model import reference
from tests.model.lake_rows import applied, log_row, state_row
from tests.model.scenarios import Case, Live, Place, Record, cases
from tests.model.shapes import plan_with, shaped_table
from tests.unit.verify.lakes import create

FIRST = Place()
STEPS = [
    pytest.param(case, step, id=f"{case.id}-{step}-applied")
    for case in cases()
    for step in range(len(case.batches) + 1)
]


@pytest.fixture(scope="module")
def session():
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        yield session


@pytest.mark.parametrize(("case", "step"), STEPS)
def test_case(session, case: Case, step: int) -> None:
    assert current(session, case, step) == case.state


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_a_state_that_has_everything_shows_it_without_the_changelog(session, case: Case) -> None:
    table, step = shaped_table(case.shape), len(case.batches)
    log, events = ingested(case, table, step)
    rows = reference.replay(events, table).items()
    create(session, table, log, [state_row(key, row, table) for key, row in rows])
    view = view_over_tail(
        table, TailFacts(), state="t", changes="none", applied=applied(events, step), dialect=DUCKDB
    )
    assert _shown(session, view, table) == case.state


def current(session: duckdb.DuckDBPyConnection, case: Case, step: int) -> Live:
    """What the view shows with the first `step` batches in the state and the others in the tail.

    It shows the same whether or not the tail's contents are known when it is planned.
    """
    table = shaped_table(case.shape)
    log, applied_events = ingested(case, table, step)
    rows = reference.replay(applied_events, table).items()
    create(session, table, log, [state_row(key, row, table) for key, row in rows])
    until = applied(applied_events, step)
    facts = read_tail(session, table, until, "t_changes")
    relations: Any = {"state": "t", "changes": "t_changes", "applied": until, "dialect": DUCKDB}
    shown = _shown(session, view_over_tail(table, facts, **relations), table)
    assert _shown(session, current_view(table, **relations), table) == shown
    return shown


def _shown(session: duckdb.DuckDBPyConnection, view: str, table: Table) -> Live:
    keys = len(table.key)
    return {
        row[:keys]: tuple(as_sent(value) for value in row[keys:])
        for row in session.execute(view).fetchall()
    }


def ingested(
    case: Case, table: Table, step: int, place: Place = FIRST
) -> tuple[list[dict[str, Any]], list[reference.Event]]:
    """The log after all batches, and the events of the first `step`; sweeps included."""
    placeholder = plan_with(table).placeholder
    records: list[Record] = []
    applied_events: list[reference.Event] = []
    log, known = [], set()
    for number, batch in enumerate(case.records(place), 1):
        records += batch
        events = reference.with_sweeps(reference.read_all(records, table, placeholder)[0])
        log += [log_row(e, table, number) for e in events if e.identity not in known]
        known = {event.identity for event in events}
        applied_events = events if number == step else applied_events
    return log, applied_events


def as_sent(value: object) -> object:
    """Bytes as the event spells them."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
