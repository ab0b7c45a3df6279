"""Mistakes in a table's `maintenance` and `state_freshness`, reported where they are."""

import pytest

from tests.unit.config.mistakes import assert_reported
from tests.unit.config.test_problems import in_columns, in_table

CASES = {
    "sorting's column": (
        in_table("    maintenance: {sort_by: [at]}"), 6, 29, "'at', which", "declare it",
    ),
    "sorting by what does not flow": (
        in_columns("      x: {exclude: true}").replace(
            "    key:", "    maintenance: {sort_by: [x]}\n    key:"
        ),
        6, 29, "excluded 'x'", "that is not excluded",
    ),
    "sorting by others": (
        in_table("    maintenance: {by: glue, sort_by: [note]}"), 6, 5,
        "own maintenance", "by: own",
    ),
    "maintenance": (in_table("    maintenance: ours"), 6, 18, "`by` cannot be", "`own`"),
    "freshness": (in_table("    state_freshness: 1"), 6, 22, "`state_freshness`", "5"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "remedy"), CASES.values(), ids=CASES)
def test_a_mistake_is_reported_where_it_is(
    text: str, line: int, column: int, message: str, remedy: str
) -> None:
    assert_reported(text, line, column, message, remedy)
