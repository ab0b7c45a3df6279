"""The ratchet keeps each group at its counts, and at the final limits once it has met them."""

from __future__ import annotations

import pytest

from tests.language.budget import main, read_budget, render, rises, violations
from tests.language.measures import Measures


@pytest.mark.parametrize(
    ("measures", "holds"),
    [
        (Measures(docstrings=100, opening=2, words=1000, phrase=2), True),
        (Measures(docstrings=100, opening=3), False),
        (Measures(words=1000, phrase=3), False),
        (Measures(words=9000, shown=1), False),
    ],
)
def test_group_without_budget_has_the_final_limits(measures, holds):
    assert (violations({"local": measures}, {}) == []) is holds


@pytest.mark.parametrize(
    ("shown", "phrase", "reason"),
    [
        (5, 40, None),
        (6, 40, "local: shown rose from 5 to 6"),
        (5, 41, "local: phrase rose from 40 to 41"),
        (4, 40, "local: shown fell from 5 to 4"),
        (0, 0, "local: meets the final limits"),
    ],
)
def test_group_with_budget_has_exactly_its_counts(shown, phrase, reason):
    measured = {"local": Measures(words=1000, phrase=phrase, shown=shown)}
    found = violations(measured, {"local": {"opening": 0, "phrase": 40, "shown": 5}})

    assert [line.split(";")[0] for line in found] == ([reason] if reason else [])


def test_budget_of_a_group_without_files_is_reported():
    assert "has a budget but no files" in violations({}, {"old": {}})[0]


def test_budget_may_move_between_groups_but_not_rise():
    counts = {"opening": 1, "phrase": 2, "shown": 0}

    assert rises({"local": counts}, {"cdclake/local": counts}) == []
    assert rises({"local": counts}, {"a": counts, "b": counts}) == [
        "opening would rise from 1 to 2",
        "phrase would rise from 2 to 4",
    ]
    assert render({"b": counts, "a": counts}).count("\n") == 4


def test_main_refuses_to_raise_the_budget(tmp_path):
    path = tmp_path / "budget.json"
    path.write_text(render({"local": {"opening": 0, "phrase": 0, "shown": 0}}))
    before = read_budget(path)

    with pytest.raises(SystemExit, match="would rise from 0 to"):
        main(path, {"local": Measures(shown=1)})

    assert read_budget(path) == before


def test_main_lowers_the_budget_and_removes_it_at_last(tmp_path):
    path = tmp_path / "budget.json"
    path.write_text(render({"local": {"opening": 0, "phrase": 9, "shown": 3}}))

    main(path, {"local": Measures(shown=2), "cli": Measures()})
    assert read_budget(path) == {"local": {"opening": 0, "phrase": 0, "shown": 2}}

    main(path, {"local": Measures(), "cli": Measures()})
    assert not path.exists()
