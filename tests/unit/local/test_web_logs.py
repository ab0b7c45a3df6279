"""What a lake of web logs refuses, and how its requests are counted."""

from dataclasses import replace
from pathlib import Path

import pytest

from cdclake.config.resolve import load_plan
from cdclake.errors import InputError
from cdclake.local import unstreamed
from cdclake.local.firehose.journal import Journal, journal_file
from cdclake.local.lake.lake import LakeState
from cdclake.local.process.home import Home
from cdclake.local.puts.abandoned_records import refuse_to_leave
from cdclake.local.puts.put_figures import Figures
from cdclake.plan import Plan
from tests.source_tree import PROJECT

PLAN = load_plan(PROJECT / "pipelines" / "weblogs.yaml")
WITHOUT = replace(PLAN, web_logs=())
RENAMED = replace(PLAN, name="other")
FIGURES = Figures(
    name="request", rows={"request_200": 3, "request_other": 2}, acknowledged=7, waiting=1,
    failed=1, dropped=0, redriven=0, last_error=None,
)  # fmt: skip


@pytest.mark.parametrize("after", [WITHOUT, RENAMED], ids=["removed", "renamed"])
def test_a_stream_leaves_only_when_nothing_waits_in_it(tmp_path: Path, after: Plan) -> None:
    home, before = Home(tmp_path), LakeState(plan=PLAN.to_json(), pipeline_file="logs.yaml")
    refuse_to_leave(home, before, after)
    journal = Journal(journal_file(home))
    [offset] = journal.append("weblogs-request", [b"{}"])
    refuse_to_leave(home, before, PLAN)
    with pytest.raises(InputError, match="1 records of the stream weblogs-request") as refused:
        refuse_to_leave(home, before, after)
    assert "cdclake up logs.yaml" in refused.value.remedy
    journal.forget("weblogs-request", offset + 1)
    refuse_to_leave(home, before, after)


def test_a_lake_that_streams_tables_is_not_turned_into_one_of_web_logs(tmp_path: Path) -> None:
    home = Home(tmp_path)
    LakeState(plan=WITHOUT.to_json(), epoch=1).save(home)
    with pytest.raises(InputError, match="streams tables"):
        unstreamed.up(home, PLAN, "logs.yaml", None)
    with pytest.raises(InputError, match="no tables to read"):
        unstreamed.up(Home(tmp_path / "fresh"), PLAN, "logs.yaml", "postgresql://h/d")


def test_what_is_acknowledged_and_nowhere_is_missing() -> None:
    assert FIGURES.missing == 0
    assert replace(FIGURES, failed=0).missing == 1
    assert replace(FIGURES, waiting=0, rows={}).missing == 6
    assert replace(FIGURES, rows={"request_200": 9}).missing == 0  # repeated
    assert replace(FIGURES, acknowledged=None, rows={}).missing == 0
    assert replace(FIGURES, acknowledged=9).missing == 2
    assert replace(FIGURES, acknowledged=9, redriven=2).missing == 0
    assert replace(FIGURES, acknowledged=9, dropped=1).missing == 1
    assert replace(FIGURES, acknowledged=9, dropped=2).missing == 0


def test_the_journal_counts_what_it_has_acknowledged_for_good(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    journal = Journal(file)
    assert journal.acknowledged("a") == 0
    offsets = [*journal.append("a", [b"1", b"2"]), *journal.append("a", [b"3"])]
    journal.append("b", [b"1"])
    journal.forget("a", offsets[-1] + 1)
    again = Journal(file)
    assert (again.acknowledged("a"), again.acknowledged("b"), again.waiting("a")) == (3, 1, 0)
