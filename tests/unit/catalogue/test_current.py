"""The catalogue's cases by `<t>_current` in DuckDB, however much of them is applied already."""

import base64

import duckdb
import pytest

from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.views import current_view
from tests.model import reference
from tests.model.lake_rows import applied, log_row, state_row
from tests.model.scenarios import Case, Live, cases
from tests.model.shapes import plan_with, shaped_table
from tests.unit.verify.lakes import create

# The view looks for the values of creations in its tail only. One that was applied before its
# deletion was read shows NULL until that is applied, too (docs/decisions/0007).
WAITING = {
    ("P5-the-creation-is-read-before-the-deletion", 2),
    ("P5-a-row-that-waited-for-its-value-was-changed-since", 2),
    ("P5-a-chain-whose-first-deletion-is-read-last", 2),
}
STEPS = [
    pytest.param(case, step, id=f"{case.id}-{step}-applied")
    for case in cases()
    for step in range(len(case.batches) + 1)
    if (case.id, step) not in WAITING
]


@pytest.fixture(scope="module")
def session():
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        yield session


@pytest.mark.parametrize(("case", "step"), STEPS)
def test_case(session, case: Case, step: int) -> None:
    """The first `step` batches are in the state, the others in the tail."""
    table = shaped_table(case.shape)
    placeholder = plan_with(table).placeholder
    batches = case.records()
    before: list[reference.Event] = []
    log = []
    for number, batch in enumerate(batches, 1):
        known = [record for records in batches[: number - 1] for record in records]
        old = reference.with_sweeps(reference.read_all(known, table, placeholder)[0])
        new = reference.with_sweeps(reference.read_all([*known, *batch], table, placeholder)[0])
        log += [log_row(event, table, number) for event in new if event not in old]
        before = new if number == step else before
    rows = [state_row(key, row, table) for key, row in reference.replay(before, table).items()]
    create(session, table, log, rows)
    view = current_view(
        table, state="t", changes="t_changes", applied=applied(before, step), dialect=DUCKDB
    )
    keys = len(table.key)
    found: Live = {
        row[:keys]: tuple(_as_sent(value) for value in row[keys:])
        for row in session.execute(view).fetchall()
    }
    assert found == case.state


def _as_sent(value: object) -> object:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
