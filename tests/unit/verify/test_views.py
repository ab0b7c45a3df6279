"""The reader's view templates in DuckDB, over small logs and states."""

import duckdb
import pytest

from cdclake import naming
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.schemas import CHANGES_COLUMNS, SHARED_COLUMNS
from cdclake.iceberg.tail_facts import view_over_tail
from cdclake.iceberg.views import AppliedThrough, current_view, history_view
from cdclake.jobs.reader.tail import read_tail
from cdclake.plan import Column
from tests.unit.verify.cases import APPLIED_10, C10, CASES
from tests.unit.verify.key_changes import KEY_CHANGES, moved
from tests.unit.verify.lakes import create, event, make_table


@pytest.fixture
def session():
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        yield session


# With whole rows, deletes have values: the events of soft deletes are others then.
IDENTITIES = [
    (case, identity)
    for case, (facts, *_) in (CASES | KEY_CHANGES).items()
    for identity in ("default", "full")
    if identity == "default" or facts.get("deletes") != "soft"
]


@pytest.mark.parametrize(("case", "identity"), IDENTITIES)
def test_current(session, case, identity):
    facts, log, state, applied, expected = (CASES | KEY_CHANGES)[case]
    table = make_table(**{"replica_identity": identity, **facts})
    create(session, table, log, state)
    relations = {"state": "t", "changes": "t_changes", "applied": applied, "dialect": DUCKDB}
    known = view_over_tail(table, read_tail(session, table, applied, "t_changes"), **relations)
    for view in (current_view(table, **relations), known):
        assert session.execute(f"SELECT * FROM ({view}) ORDER BY id").fetchall() == expected


def test_a_value_goes_along_over_more_key_changes_than_any_limit(session):
    last = 70
    moves = [e for key in range(1, last) for e in moved(11 + 10 * key, key, key + 1)]
    table, applied = make_table(), AppliedThrough(5)
    create(session, table, [C10, *moves], [APPLIED_10])
    view = current_view(table, state="t", changes="t_changes", applied=applied, dialect=DUCKDB)
    assert session.execute(view).fetchall() == [(last, last, "A")]


def test_history_has_every_event_with_real_types(session):
    table = make_table(
        columns=(*make_table().columns, Column(source="seen", name="seen", type="timestamptz"))
    )
    create(session, table, [{**C10, "seen": "2024-01-02T03:04:05.5Z"}, event("d", 20, 21, id=1)])
    view = history_view(table, changes="t_changes", dialect=DUCKDB)
    rows = session.execute(
        f"SELECT cdc_op, id, v, seen::VARCHAR FROM ({view}) ORDER BY cdc_position"
    ).fetchall()
    assert rows == [("c", 1, 1, "2024-01-02 03:04:05.5+00"), ("d", 1, None, None)]
    shown = [column for column, *_ in session.execute(f"SELECT * FROM ({view})").description]
    events = [name for name, _ in (*SHARED_COLUMNS, *CHANGES_COLUMNS)]
    assert sorted(shown) == sorted([*events, "id", "v", "big", "seen"])


APPENDED_AGAIN = [
    C10,
    {**C10, naming.INGESTED_AT: 9},  # appended twice
    event("c", 10, 11, offset=90, ingested=8, id=1, v=1, big="A"),  # sent twice
    event("c", 10, 11, id=2, v=1),  # of another key, with the same LSN
    event("d", 20, 21, id=1),
    event("d", 20, 21, id=1),
    event("t", 30, 31),
    event("t", 30, 31),
]


@pytest.mark.parametrize(("delivery", "rows"), [("firehose", 4), ("stream", 8)])
def test_history_has_each_event_of_firehose_once(session, delivery, rows):
    """The row kept is the state's, with the greatest position, as it was first ingested."""
    table = make_table(delivery=delivery)
    create(session, table, APPENDED_AGAIN)
    view = history_view(table, changes="t_changes", dialect=DUCKDB)
    shown = session.execute(
        f"SELECT cdc_op, id, cdc_offset, epoch_us(cdc_ingested_at) FROM ({view})"
    ).fetchall()
    assert len(shown) == rows
    once = {("c", 1, 90, 8), ("c", 2, 11, 1), ("d", 1, 21, 1), ("t", None, 31, 1)}
    assert {*shown} >= once


def test_history_reads_only_the_key_that_is_asked_for(session):
    """The removal of repeated events is behind the predicate, not in front of it."""
    table = make_table(delivery="firehose")
    create(session, table, APPENDED_AGAIN)
    view = history_view(table, changes="t_changes", dialect=DUCKDB)
    [[_, plan]] = session.execute(f"EXPLAIN SELECT * FROM ({view}) WHERE id = 1").fetchall()
    assert plan.index("WINDOW") < plan.index("id=1")
