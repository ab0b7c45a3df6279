"""Commands that answers and errors print can be typed although a path has spaces."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cdclake.cli import init
from cdclake.config.problems import InvalidPipeline, Problem
from cdclake.postgres.proposal import Proposal
from tests.unit.postgres.tables import actual

FILE = "my lake's file.yaml"


def test_the_command_after_init_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    init._render(Path(FILE), [Proposal(source=actual())], [])
    table = {"source": "public.t", "added_columns": ["a"]}
    answer = {"file": FILE, "tables": [table], "added_tables": [], "refused": []}
    init._render_update({**answer, "undeclared_tables": []})
    said = [line for line in capsys.readouterr().out.splitlines() if "cdclake up" in line]
    assert [shlex.split(line.partition("run: ")[2]) for line in said] == [
        ["cdclake", "up", FILE]
    ] * 2


def test_the_command_of_an_invalid_file_can_be_typed() -> None:
    remedy = InvalidPipeline(FILE, [Problem(1, 1, "wrong", "correct it")]).remedy
    assert shlex.split(remedy.split("`")[1]) == ["cdclake", "validate", FILE]
