"""Selected rows are the wanted ones, and those of a whole table are the table itself."""

import numpy as np
import pyarrow as pa
import pytest

from cdclake.jobs.iceberg.row_selection import RowNumbers, filtered

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]})


@pytest.mark.parametrize(
    "numbers", [[], [0], [2, 0], [2, 1, 0], [0, 1, 2], [0, 0, 1], [0, 1], [0, 1, 2, 2]]
)
def test_rows_are_taken_by_their_numbers(numbers: list[int]) -> None:
    rows = RowNumbers(np.array(numbers, np.int64), ROWS.num_rows)
    assert rows.take(ROWS).to_pylist() == [ROWS.to_pylist()[number] for number in numbers]
    column = ROWS.column("name").combine_chunks()
    assert rows.take(column).to_pylist() == [column[number].as_py() for number in numbers]


def test_all_rows_in_their_order_are_not_copied() -> None:
    assert RowNumbers(np.arange(3), 3).take(ROWS) is ROWS
    assert RowNumbers(np.arange(3), 4).take(pa.array([1, 2, 3, 4])).to_pylist() == [1, 2, 3]
    assert filtered(ROWS, pa.array([True] * 3)) is ROWS


@pytest.mark.parametrize(
    ("wanted", "left"), [([True, False, True], [1, 3]), ([True, None, None], [1]), ([None] * 3, [])]
)
def test_rows_are_left_out_by_a_condition(wanted: list[bool | None], left: list[int]) -> None:
    assert filtered(ROWS, pa.array(wanted, pa.bool_()))["id"].to_pylist() == left
