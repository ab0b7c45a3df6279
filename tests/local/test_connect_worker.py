"""Answers of real workers to the probe's connector, whose recording the unit tests read."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.deployed.connector_answers import connector_answers
from cdclake.local.lake import stack
from cdclake.local.process.home import Home
from tests.local.connect_worker import Workers
from tests.recorded.connect_answers import recorded_answers

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(600)]


def test_workers_answer_as_recorded(tmp_path: Path) -> None:
    recorded = recorded_answers()
    home = Home(tmp_path / "home")
    home.create()
    try:
        answers = Workers(home, tmp_path).answers()
    finally:
        stack.purge(home)
    assert answers.keys() == recorded.keys()
    for case, answer in answers.items():
        told = connector_answers(f"{answer.log}\n{answer.reason}")
        assert told == connector_answers(recorded[case]), case
