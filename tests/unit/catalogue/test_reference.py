"""The catalogue's cases by the reference model: the files say what the model says."""

import pytest

from tests.model import reference
from tests.model.scenarios import Case, cases
from tests.model.shapes import plan_with, shaped_table


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_case(case: Case) -> None:
    table = shaped_table(case.shape)
    placeholder = plan_with(table).placeholder
    records = []
    for number, batch in enumerate(case.records(), 1):
        records += batch
        events, refused = reference.read_all(records, table, placeholder)
        rows = reference.replay(events, table)
        if number in case.then:
            assert reference.live(rows) == case.then[number], f"after batch {number}"
    assert reference.live(rows) == case.state
    assert reference.missing(rows) == case.missing
    assert reference.logged(events).split() == case.log.split()
    assert refused == list(case.refused)
