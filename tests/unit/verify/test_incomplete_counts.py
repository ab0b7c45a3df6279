"""The count of `status`: from the tail, and from the state only if the tail gives a reason."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import duckdb
import pytest

from cdclake import naming
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.incomplete_rows import incomplete_rows
from cdclake.jobs.reader.incomplete_counts import incomplete_count
from cdclake.jobs.verify.engine_rows import EngineRows
from cdclake.plan import Column
from cdclake.verify.columns import compared_columns
from cdclake.verify.statements import Comparable
from tests.unit.verify.lakes import create, event, make_plan, make_table

TABLE = make_table()
BORN = event("c", 20, 21, ingested=5, id=2, v=1, big="?")
APPLIED = {"id": 2, "v": 1, naming.DELETED: False, naming.POSITION: BORN[naming.POSITION]}
OLDER = {**APPLIED, naming.POSITION: ""}


def counted(log: list[dict[str, Any]], state: list[dict[str, Any]] | None) -> int:
    """The count over this tail; without `state` there is no state to be read."""
    with duckdb.connect() as session:
        create(session, TABLE, log, state or ())
        tail = naming.tail_name(TABLE.name)
        session.execute(f"CREATE VIEW {tail} AS SELECT * FROM {TABLE.changes}")
        if state is None:
            session.execute(f"DROP TABLE {TABLE.name}")
        return incomplete_count(session, TABLE)


@pytest.mark.parametrize(
    ("state", "count"),
    [([], 1), ([OLDER], 1), ([APPLIED], 0)],
    ids=["new key", "key of an earlier row", "applied"],
)
def test_a_creation_without_its_value_counts_until_it_is_applied(
    state: list[dict[str, Any]], count: int
) -> None:
    assert counted([BORN, event("u", 30, 31, id=2, v=2, big="?")], state) == count


def test_a_key_is_found_in_the_state_by_its_type_there() -> None:
    day = Column(source="id", name="id", type="date")
    table = make_table(columns=(day, *TABLE.columns[1:]))
    applied = {**APPLIED, "id": date(1970, 1, 3)}
    with duckdb.connect() as session:
        create(session, table, [BORN], [applied])
        session.execute(f"CREATE VIEW {naming.tail_name('t')} AS SELECT * FROM t_changes")
        assert incomplete_count(session, table) == 0
        session.execute("DELETE FROM t")
        assert incomplete_count(session, table) == 1


def test_a_row_that_lacks_two_values_counts_once() -> None:
    born = {**BORN, naming.UNAVAILABLE: ["big", "other"]}
    assert counted([born], []) == 1


@pytest.mark.parametrize("key", ["id", "waits_for"])
def test_a_column_may_be_called_as_one_of_the_query(key: str) -> None:
    columns = [
        *(replace(column, name=key) if column.name == "id" else column for column in TABLE.columns),
        *([Column(source="waits_for", name="waits_for", type="text")] if key == "id" else []),
    ]
    table = make_table(columns=tuple(columns), key=(key,))
    row = {**BORN, key: 2}
    with duckdb.connect() as session:
        create(session, table, [row])
        session.execute(f"CREATE VIEW {naming.tail_name('t')} AS SELECT * FROM t_changes")
        assert incomplete_count(session, table) == 1
        engine = EngineRows(
            lambda statement: session.execute(statement).fetchall(),
            lambda each: incomplete_rows(each, changes="t_changes", state=None, dialect=DUCKDB),
        )
        compared = compared_columns(table, make_plan(table), {})
        [found] = engine.incomplete(Comparable("duckdb", "t_changes", compared), table)
        assert found.texts == ("2", "big")


def test_the_state_is_read_only_if_the_tail_lacks_a_value() -> None:
    assert counted([event("c", 10, 11, id=1, v=1, big="A")], None) == 0
    with pytest.raises(duckdb.CatalogException):
        counted([BORN], None)


def test_a_table_without_large_values_reads_nothing() -> None:
    with duckdb.connect() as session:
        assert incomplete_count(session, make_table(columns=TABLE.columns[:2])) == 0
