"""Buffers side by side: each record once, a commit per buffer, and ages of records in order."""

from typing import Any

import pytest

from benchmarks.buffering import Puts, ages, encode_record, measure_buffering
from benchmarks.put_lake import Commit
from benchmarks.sizes import SIZES
from scripts.buffering_page import PAGE, commit_usd, interval_s, page

TINY = SIZES["tiny"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return measure_buffering(TINY, tmp_path_factory.mktemp("buffering"))


@pytest.mark.slow  # by default the figures of the committed run
def test_every_delivery_holds_each_record_once(measured: dict[str, Any]) -> None:
    runs = measured["runs"]
    assert [run["wrong"] for run in runs] == [None] * 9
    assert {(run["buffer_seconds"], run["buffer_mib"]) for run in runs} == {
        (seconds, mib) for seconds in TINY.buffering.buffer_seconds for mib in (1, 64, 128)
    }


@pytest.mark.slow  # by default the figures of the committed run
def test_a_shorter_buffer_makes_more_commits_and_requests(measured: dict[str, Any]) -> None:
    by_time = {run["buffer_seconds"]: run for run in measured["runs"]}
    shortest, longest = by_time[1], by_time[4]
    assert shortest["commits"] > longest["commits"] >= 1
    assert longest["seconds_a_commit"] >= 4 > shortest["seconds_a_commit"] >= 1
    assert longest["freshness_p95_s"] > shortest["freshness_p95_s"] > 0
    for kind, count in longest["requests"].items():
        assert shortest["requests"][kind] > count > 0


def test_ages_follow_the_order_of_the_records() -> None:
    puts = [Puts(10.0, 3), Puts(11.0, 3), Puts(12.0, 3)]
    commits = [Commit(12.0, 4), Commit(15.0, 3)]
    assert list(ages(puts, commits)) == [(2000, 3), (1000, 1), (4000, 2), (3000, 1)]


def test_a_record_is_the_same_each_time_and_not_small() -> None:
    assert encode_record(7, 0.0) == encode_record(7, 0.0) != encode_record(8, 0.0)
    assert 400 < len(encode_record(7, 0.0)) < 900


def test_the_limit_that_is_reached_first_decides() -> None:
    run = {"buffer_seconds": 60, "buffer_mib": 1}
    assert interval_s(run, 1000) == 60
    assert interval_s(run, 1 << 20) == 1


def test_a_commit_costs_what_its_requests_cost() -> None:
    run = {"commits": 2, "requests": {"s3_write": 20, "s3_read": 50, "glue": 10}}
    assert commit_usd(run) == pytest.approx((20 * 5e-6 + 50 * 4e-7 + 10 * 1e-6) / 2)


def test_the_page_has_the_figures_of_the_results() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `make docs`"
