"""Planted faults are found: a corrupted value, a missing row, an extra row, both directions."""

from collections.abc import Iterator

import duckdb
import pytest

from cdclake.plan import Column
from cdclake.verify.columns import compared_columns
from cdclake.verify.compare import Row, differing, differing_columns, pairs
from cdclake.verify.statements import Comparable, unpacked
from tests.unit.verify.lakes import make_plan, make_table

COLUMNS = tuple(
    Column(source=name, name=name, type=kind)
    for name, kind in {
        "id": "integer", "part": "text", "v": "double precision", "n": "numeric", "big": "text",
    }.items()
)  # fmt: skip
TABLE = make_table(columns=COLUMNS, key=("id", "part"))
COMPARED = compared_columns(TABLE, make_plan(TABLE), {})
BUCKETS = 7
RIGHT = "SELECT i::INT id, 'p|' || i AS part, i / 3 AS v, (i / 4)::DECIMAL(9,2)::VARCHAR AS n, "
RIGHT += "CASE WHEN i % 5 > 0 THEN 'text ' || i END AS big FROM range(100) r(i)"


def comparable(relation: str) -> Comparable:
    return Comparable("duckdb", relation, COMPARED)


@pytest.fixture
def session():
    """Two relations of the same rows: `source`, which stands in for one, and `lake`."""
    with duckdb.connect() as session:
        session.execute(f"CREATE TABLE source AS {RIGHT}")
        session.execute(f"CREATE TABLE lake AS {RIGHT}")
        yield session


def found(session: duckdb.DuckDBPyConnection) -> tuple[list[list[str | None]], int]:
    """The keys that a whole comparison finds, and how many buckets it read for them."""
    sums = [
        {row[0]: row[1:] for row in session.execute(comparable(r).bucket_sums(BUCKETS)).fetchall()}
        for r in ("source", "lake")
    ]
    wanted = [b for b in range(BUCKETS) if sums[0].get(b) != sums[1].get(b)]
    if not wanted:
        return [], 0
    source, lake = (
        map(Row.of, session.execute(comparable(r).rows_of_buckets(BUCKETS, wanted)).fetchall())
        for r in ("source", "lake")
    )
    return [unpacked(key) for _, key in differing(source, lake, COMPARED)], len(wanted)


def test_equal_tables_need_no_rows(session):
    assert found(session) == ([], 0)


@pytest.mark.parametrize(
    "fault",
    [
        "UPDATE lake SET big = 'Text 42' WHERE id = 42",
        "UPDATE lake SET big = NULL WHERE id = 42",
        "UPDATE lake SET big = '|n' WHERE id = 42",
        "UPDATE lake SET big = '' WHERE id = 42",
        "UPDATE lake SET v = 14.000000000000002 WHERE id = 42",
        "UPDATE lake SET v = 'NaN' WHERE id = 42",
        "UPDATE lake SET n = '10.51' WHERE id = 42",
        "DELETE FROM lake WHERE id = 42",
        "DELETE FROM source WHERE id = 42",
        "INSERT INTO lake SELECT * FROM lake WHERE id = 42",
    ],
)
def test_one_fault_is_found_in_its_bucket_alone(session, fault):
    session.execute(fault)
    assert found(session) == ([["42", "p|42"]], 1)


def test_a_value_that_moved_to_the_next_column_is_found(session):
    session.execute("UPDATE source SET part = 'a|,', n = 'b' WHERE id = 1")
    session.execute("UPDATE lake SET part = 'a', n = '|,b' WHERE id = 1")
    assert sorted(found(session)[0]) == [["1", "a"], ["1", "a|,"]]


def test_other_text_of_the_same_number_is_no_difference(session):
    session.execute("UPDATE lake SET n = n || '0' WHERE id = 42")
    assert found(session) == ([], 1)


def test_a_sample_counts_all_and_sums_up_one_bucket(session):
    whole = {
        row[0]: row[1:]
        for row in session.execute(comparable("source").bucket_sums(BUCKETS)).fetchall()
    }
    part = session.execute(comparable("source").bucket_sums(BUCKETS, only=3)).fetchall()
    assert sum(row[1] for row in part) == 100
    assert {row[0]: row[2] for row in part if row[2]} == {3: whole[3][1]}


def test_pairs_hold_one_row_at_a_time():
    def endless(step: int) -> Iterator[Row]:
        number = 0
        while True:
            yield Row(number, str(number), ())
            number += step

    stream = pairs(endless(1), endless(2))
    kinds = [
        (left is not None, right is not None) for left, right in (next(stream) for _ in "1234")
    ]
    assert kinds == [(True, True), (True, False), (True, True), (True, False)]


def test_differing_columns_by_type():
    left = ("1", "p", "3ff0000000000000", "1.5", None)
    assert differing_columns(left, ("1", "p", "3ff0000000000000", "1.500", None), COMPARED) == ()
    columns = differing_columns(left, ("1", "p", "NaN", "1.5", "x"), COMPARED)
    assert [column.name for column in columns] == ["v", "big"]


def test_keys_of_two_hundred_columns_pack_and_unpack():
    table = make_table(
        columns=tuple(Column(source=f"c{i}", name=f"c{i}", type="text") for i in range(120)),
        key=tuple(f"c{i}" for i in range(120)),
    )
    compared = compared_columns(table, make_plan(table), {})
    selected = ", ".join(f"'|{i}' AS c{i}" for i in range(120))
    with duckdb.connect() as session:
        session.execute(f"CREATE TABLE t AS SELECT {selected}")
        statement = Comparable("duckdb", "t", compared).rows_of_buckets(1, [0])
        row = Row.of(session.execute(statement).fetchall()[0])
    assert unpacked(row.key) == [f"|{i}" for i in range(120)] == list(row.texts)
