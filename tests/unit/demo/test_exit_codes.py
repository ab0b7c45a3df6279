"""Exit codes of `cdclake demo`: a difference is 1, changes that did not arrive are 4."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
import typer

from cdclake.cli.demo import _end
from cdclake.jobs.verify.report import TableComparison

LATE = {"late": True, "error": "Firehose is behind"}


def comparison(**found: Any) -> dict[str, Any]:
    table = TableComparison(table="orders", source="public.orders", **found)
    return {"ok": table.ok, "tables": [asdict(table)]}


@pytest.mark.parametrize(
    ("proof", "while_writing", "code"),
    [
        ({}, {}, 0),
        ({"missing": 1}, {}, 1),
        ({}, {"extra": 1}, 1),
        (LATE, {}, 4),
        ({}, LATE, 4),
        (LATE, LATE, 4),
        (LATE, {"extra": 1}, 1),
        ({**LATE, "missing": 1}, {}, 1),
    ],
)
def test_only_late_tables_end_the_demo_with_4(
    proof: dict[str, Any], while_writing: dict[str, Any], code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    last, first = comparison(**proof), comparison(**while_writing)
    answer = {**last, "ok": last["ok"] and first["ok"], "verified_while_writing": first}
    ended = 0
    try:
        _end(answer, True, lambda _: None)
    except typer.Exit as exit_:
        ended = exit_.exit_code
    shown = json.loads(capsys.readouterr().out)
    assert (ended, shown["tables"]) == (code, last["tables"])
    if code == 4:
        assert shown["error"]["message"] == "changes of orders did not arrive"
    else:
        assert "error" not in shown


def test_a_sample_database_that_is_only_late_ends_with_4() -> None:
    with pytest.raises(typer.Exit) as ended:
        _end(comparison(**LATE), True, lambda _: None)
    assert ended.value.exit_code == 4
