"""Every fold takes all texts of one key for one key, as the state has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from cdclake import naming
from cdclake.iceberg.as_of_view import as_of_view, first_complete
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.incomplete_rows import incomplete_rows
from cdclake.iceberg.latest_row import folded_rows
from cdclake.iceberg.rebuilt_view import rebuilt_view
from cdclake.iceberg.tail_facts import view_over_tail
from cdclake.iceberg.views import current_view
from cdclake.jobs.apply.folded_changes import fold
from cdclake.jobs.reader.tail import read_tail
from tests.unit.verify.key_spellings import KEYS, histories, spelled_table
from tests.unit.verify.lakes import create, event

EVERY_KIND = pytest.mark.parametrize("kind", KEYS)
EVERY_CASE = pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind in KEYS for case in histories(kind)]
)


@pytest.fixture
def session() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as session:
        session.execute("SET TimeZone = 'UTC'")
        yield session


@EVERY_CASE
def test_current_has_one_row_of_a_key(
    session: duckdb.DuckDBPyConnection, kind: str, case: str
) -> None:
    facts, log, state, applied, expected = histories(kind)[case]
    table = spelled_table(kind, **facts)
    create(session, table, log, state)
    relations: dict[str, Any] = {
        "state": "t", "changes": "t_changes", "applied": applied, "dialect": DUCKDB,
    }  # fmt: skip
    known = view_over_tail(table, read_tail(session, table, applied, "t_changes"), **relations)
    for view in (current_view(table, **relations), known):
        assert session.execute(f"SELECT * FROM ({view}) ORDER BY id").fetchall() == expected


@EVERY_CASE
def test_rebuild_and_past_have_one_row_of_a_key(
    session: duckdb.DuckDBPyConnection, kind: str, case: str
) -> None:
    facts, log, _, _, expected = histories(kind)[case]
    table = spelled_table(kind, **facts)
    create(session, table, [{**row, naming.COMMITTED_AT: 1} for row in log])
    rebuilt = rebuilt_view(table, changes="SELECT * FROM t_changes", floor="", dialect=DUCKDB)
    past = as_of_view(table, changes="t_changes", moment="now()", dialect=DUCKDB)
    for view in (rebuilt, past):
        rows = session.execute(f"SELECT id, v, big FROM ({view}) ORDER BY id").fetchall()
        assert rows == expected


@EVERY_KIND
def test_folds_of_arrow_and_sql_are_equal(session: duckdb.DuckDBPyConnection, kind: str) -> None:
    table = spelled_table(kind)
    for _, log, *_ in histories(kind).values():
        create(session, table, log)
        events = session.execute("SELECT * FROM t_changes").to_arrow_table()
        unavailable = events.schema.get_field_index(naming.UNAVAILABLE)
        kept = pa.field(naming.UNAVAILABLE, pa.list_(pa.string()))
        events = events.cast(events.schema.set(unavailable, kept))
        in_arrow = fold(events, table, ("big",), "")
        facts = ("id", naming.POSITION, naming.DELETED, "v", "big")
        in_sql = session.execute(
            f"SELECT {', '.join(facts)} FROM ({folded_rows(table, 't_changes', ('big',), DUCKDB)})"
        ).fetchall()
        rows = zip(*(in_arrow.columns[name].to_pylist() for name in facts), strict=True)
        assert sorted(rows, key=repr) == sorted(in_sql, key=repr)


@EVERY_KIND
def test_a_value_that_came_under_another_text_is_not_missing(
    session: duckdb.DuckDBPyConnection, kind: str
) -> None:
    old, new, value = KEYS[kind]
    born = event("c", 10, 11, id=old, v=1, big="?")
    table = spelled_table(kind)
    listed = incomplete_rows(table, changes="t_changes", state=None, dialect=DUCKDB)
    create(session, table, [born, event("u", 20, 21, id=new, v=2, big="?")])
    assert session.execute(listed).fetchall() == [(value, "big")]
    create(session, table, [born, event("u", 20, 21, id=new, v=2, big="SENT")])
    assert session.execute(listed).fetchall() == []


@EVERY_KIND
def test_a_later_read_of_a_known_row_does_not_complete_a_table(
    session: duckdb.DuckDBPyConnection, kind: str
) -> None:
    old, new, _ = KEYS[kind]
    log = [
        {**event("r", 10, 11, phase=0, id=old), naming.COMMITTED_AT: 1_000_000},
        {**event("r", 20, 21, phase=0, id=new), naming.COMMITTED_AT: 2_000_000},
    ]
    create(session, spelled_table(kind), log)
    query = first_complete(spelled_table(kind), changes="SELECT * FROM t_changes", dialect=DUCKDB)
    [[found]] = session.execute(f"SELECT epoch_us(({query}))").fetchall()
    assert found == 1_000_000


def test_the_text_of_other_keys_is_compared_as_it_is() -> None:
    """A predicate on such a key can then reach the changelog's statistics."""
    for kind in ("bigint", "text", "uuid", "date", "timestamp", "bytea", "numeric", "money"):
        folded = folded_rows(spelled_table(kind), "t_changes", (), DUCKDB)
        assert folded.endswith('GROUP BY "id") AS grouped')
