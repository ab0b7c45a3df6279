"""Random histories of a database: the reference model and `<t>_current` both end in its rows.

As of an earlier commit time, the changelog alone has the rows that the reference has by then.
"""

from random import Random

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdclake import naming
from cdclake.iceberg.as_of_view import as_of_view
from cdclake.iceberg.dialect import DUCKDB
from tests.model import reference
from tests.model.histories import history
from tests.model.lake_rows import log_row
from tests.model.scenarios import Case
from tests.model.shapes import plan_with, shaped_table
from tests.unit.catalogue.test_as_of import HOUR, events_of, expected, rows
from tests.unit.catalogue.test_current import current
from tests.unit.verify.lakes import create

SEEDS, STEPS = st.integers(0, 2**32), st.integers(4, 60)
DETERMINISTIC = settings(
    max_examples=250,
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


@settings(DETERMINISTIC, max_examples=50)
@given(seed=SEEDS, steps=STEPS)
def test_current_ends_in_the_databases_rows(session, seed: int, steps: int) -> None:
    """However much of the history is applied, unless an applied row waits for its value."""
    random = Random(seed)
    case = history(random, "history", steps=steps)
    step = random.randrange(len(case.batches) + 1)
    while _waits_for_a_value(case, step):  # docs/decisions/0007
        step -= 1
    assert current(session, case, step) == case.state


@settings(DETERMINISTIC, max_examples=50)
@given(seed=SEEDS, steps=STEPS)
def test_as_of_has_the_rows_of_any_commit(session, seed: int, steps: int) -> None:
    """Later events of a value, a truncate or a changed key must not show before their commit."""
    random = Random(seed)
    case = history(random, "history", steps=steps)
    table, events = shaped_table("plain"), events_of(case)
    commits: dict[int | None, int] = {}  # a repeated event may name another previous commit
    committed = [commits.setdefault(event.tx, HOUR * (len(commits) + 1)) for event in events]
    stamped = list(zip(events, committed, strict=True))
    log = [{**log_row(event, table, 1), naming.COMMITTED_AT: at} for event, at in stamped]
    create(session, table, random.sample(log, len(log)))
    for moment in (HOUR * random.randint(0, len(commits)) for _ in range(3)):
        view = as_of_view(table, changes="t_changes", moment=DUCKDB.instant(moment), dialect=DUCKDB)
        known = [event for event, at in stamped if at <= moment]
        assert rows(session, view, len(table.key)) == expected(known, case), moment


def _waits_for_a_value(case: Case, step: int) -> bool:
    table = shaped_table("plain")
    applied = [record for batch in case.records()[:step] for record in batch]
    events, _ = reference.read_all(applied, table, plan_with(table).placeholder)
    return bool(reference.missing(reference.replay(events, table)))
