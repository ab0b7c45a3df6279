"""Verdicts of a comparison that `status` shows until the next one."""

from __future__ import annotations

from typing import Any

import pytest

from cdclake.jobs.control.last_verified import note_verified, read_verified
from cdclake.jobs.verify.report import Report, TableComparison
from tests.spark.events import MemoryStore

SAMPLE = 1000


def verdicts(sample: int | None = None, **found: Any) -> dict[str, bool]:
    table = TableComparison(table="orders", source="public.orders", **found)
    return Report(tables=[table], sample=sample, rounds=1, seconds=1.0).verdicts()


@pytest.mark.parametrize("difference", ["missing", "extra", "different"])
def test_difference_is_a_verdict_also_in_a_sample(difference: str) -> None:
    assert verdicts(**{difference: 1}) == {"orders": False}
    assert verdicts(SAMPLE, **{difference: 1}) == {"orders": False}


def test_equal_sample_is_no_verdict() -> None:
    assert verdicts() == {"orders": True}
    assert verdicts(SAMPLE) == {}


def test_late_table_has_no_verdict() -> None:
    """Rows that it lacks may be changes that did not arrive in time."""
    assert verdicts(late=True, error="3 records have not arrived", missing=3) == {}


def test_table_that_cannot_be_compared_has_no_verdict() -> None:
    assert verdicts(error="the source no longer has the column note") == {}
    assert verdicts(error="stopped", missing=1) == {"orders": False}


def test_table_without_a_verdict_keeps_its_last_one() -> None:
    store: Any = MemoryStore()
    note_verified(store, verdicts(missing=1))
    note_verified(store, verdicts(SAMPLE))
    assert not read_verified(store)["orders"].equal
