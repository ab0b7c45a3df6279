"""Random histories of a database: the reference model and `<t>_current` both end in its rows."""

from random import Random

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.model import reference
from tests.model.histories import history
from tests.model.scenarios import Case
from tests.model.shapes import plan_with, shaped_table
from tests.unit.catalogue.test_current import current

SEEDS, STEPS = st.integers(0, 2**32), st.integers(4, 60)
DETERMINISTIC = settings(
    max_examples=500,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@DETERMINISTIC
@given(seed=SEEDS, steps=STEPS)
def test_the_reference_ends_in_the_databases_rows(seed: int, steps: int) -> None:
    case = history(Random(seed), "history", steps=steps)
    table = shaped_table("plain")
    records = [record for batch in case.records() for record in batch]
    events, refused = reference.read_all(records, table, plan_with(table).placeholder)
    rows = reference.replay(events, table)
    assert reference.live(rows) == case.state
    assert (refused, reference.missing(rows)) == ([], {})
    assert sorted(reference.logged(events).split()) == sorted(case.log.split())


@pytest.fixture(scope="module")
def session():
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        yield session


@settings(DETERMINISTIC, max_examples=100)
@given(seed=SEEDS, steps=STEPS)
def test_current_ends_in_the_databases_rows(session, seed: int, steps: int) -> None:
    """However much of the history is applied, unless an applied row waits for its value."""
    random = Random(seed)
    case = history(random, "history", steps=steps)
    step = random.randrange(len(case.batches) + 1)
    while _waits_for_a_value(case, step):  # docs/decisions/0007
        step -= 1
    assert current(session, case, step) == case.state


def _waits_for_a_value(case: Case, step: int) -> bool:
    table = shaped_table("plain")
    applied = [record for batch in case.records()[:step] for record in batch]
    events, _ = reference.read_all(applied, table, plan_with(table).placeholder)
    return bool(reference.missing(reference.replay(events, table)))
