"""Formats of a query's answer, in narrow and wide terminals and in files."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from cdclake.cli import aligned
from cdclake.cli.answer_formats import MAX_CELL_WIDTH, Format, footer, lines_of
from cdclake.query_answer import Answer

ANSWER = Answer(
    (("id", "BIGINT"), ("name", "VARCHAR")),
    [[7, "Ann"], [12345, None], [3, "two\nlines"]],
)


def answer_of(*values: Any) -> Answer:
    return Answer((("v", "VARCHAR"),), [[value] for value in values])


def test_table_aligns_numbers_right_and_keeps_each_row_on_one_line() -> None:
    assert list(lines_of(ANSWER, None, 80)) == [
        "   id  name",
        "-----  ----------",
        "    7  Ann",
        "12345",
        r"    3  two\nlines",
    ]


def test_row_that_does_not_fit_is_shown_one_value_per_line() -> None:
    fits = max(map(len, lines_of(ANSWER, Format.TABLE, None)))
    assert next(lines_of(ANSWER, None, fits)).startswith("   id  name")
    lines = list(lines_of(ANSWER, None, fits - 1))
    assert lines[:3] == ["row 1", "  id    7", "  name  Ann"]
    assert lines[5] == "  name"


def test_chosen_table_is_cut_at_the_terminals_width() -> None:
    lines = list(lines_of(ANSWER, Format.TABLE, 10))
    assert max(map(len, lines)) == 10 and lines[-1] == r"    3  tw…"


def test_long_cell_is_cut_unless_every_value_has_its_line_without_a_terminal() -> None:
    long = answer_of("x" * 1000)
    assert list(lines_of(long, Format.TABLE, None))[-1] == "x" * (MAX_CELL_WIDTH - 1) + "…"
    assert list(lines_of(long, Format.LINE, None))[-1] == f"  v  {'x' * 1000}"
    assert len(list(lines_of(long, Format.LINE, 40))[-1]) == 40


def test_wide_characters_take_two_columns() -> None:
    assert aligned.cut("日本語", 5) == "日本…"
    lines = aligned.aligned(["n", "m"], [["日本", "1"], ["a", "2"]])
    assert lines[-2:] == ["日本  1", "a     2"]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert list(lines_of(answer_of("\x1b[31mred\x07\x9b"), Format.TABLE, None))[-1] == (
        r"\x1b[31mred\x07\x9b"
    )


@pytest.mark.parametrize("value", ["", "plain", 'quo"te', "a,b", "two\nlines", "\r", 'x"'])
def test_csv_is_read_back(value: str) -> None:
    text = "\n".join(lines_of(answer_of(value), Format.CSV, None))
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["v"], [value]]


def test_csv_tells_null_from_an_empty_text() -> None:
    answer = Answer((("a", "X"), ("b", "X"), ("c", "X")), [[None, "", {"k": [True]}]])
    assert list(lines_of(answer, Format.CSV, None))[1] == ',"","{""k"": [true]}"'


def test_markdown_escapes_what_ends_a_cell() -> None:
    assert list(lines_of(answer_of("a|b\\"), Format.MD, None)) == [
        "| v |",
        "| --- |",
        r"| a\|b\\ |",
    ]


def test_answer_without_rows_has_its_names() -> None:
    empty = Answer((("id", "BIGINT"),), [])
    assert list(lines_of(empty, None, 80)) == ["id", "--"]
    assert footer(empty) == "0 rows"
    assert "csv or json" in footer(Answer((), [[1]], more=True))
