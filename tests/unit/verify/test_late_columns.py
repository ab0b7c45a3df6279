"""Warnings of queries `--as-of` a time before a column was added to the changelog."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.jobs.reader.catalog import CatalogTable, parse_table
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.late_columns import late_columns
from cdclake.jobs.reader.schema_history import is_added_after
from tests.unit.verify.lakes import make_plan, make_table

AT = [(3, "cdc_committed_at", "timestamptz")]
FIRST = [*AT, (1, "id", "long"), (2, "status", "string")]
AGAIN = [*AT, (1, "id", "long"), (2, "cdc_dropped_status", "string"), (4, "status", "int")]


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def log_of(*commits: tuple[int, int], fields: Any = (FIRST, AGAIN)) -> CatalogTable:
    """A changelog with these commits: (milliseconds, schema)."""
    return parse_table("orders_changes", "s3://b/1.json", {
        "schemas": [
            {"schema-id": number, "fields": [dict(zip(("id", "name", "type"), each, strict=True))
                                             for each in listed]}
            for number, listed in enumerate(fields)
        ],
        "current-schema-id": len(fields) - 1,
        "snapshots": [
            {"snapshot-id": ms, "timestamp-ms": ms, "schema-id": number} for ms, number in commits
        ],
    })  # fmt: skip


@pytest.mark.parametrize(
    ("commits", "milliseconds", "after"),
    [
        ([(1000, 0), (2000, 1)], 1999, True),
        ([(1000, 0), (2000, 1)], 2000, False),
        ([(1000, 0)], 9999, True),  # no commit has the column yet
        ([(3000, 1)], 2999, True),  # added at some time before
        ([(3000, 1)], 3000, False),
    ],
)
def test_the_time_that_a_column_was_added(
    commits: list[tuple[int, int]], milliseconds: int, after: bool
) -> None:
    log = log_of(*commits)
    assert is_added_after(log, "status", milliseconds) is after
    assert not is_added_after(log, "id", 0)


def warnings(folder: Path, log: CatalogTable, ms: int) -> tuple[dict[str, str], ...]:
    table = make_table(name="orders")
    reader = Reader(
        plan=make_plan(table), s3="http://x", glue="http://x", bucket="lake", spill=folder
    )
    reader.__dict__["catalog"] = SimpleNamespace(load=lambda _: log)
    return late_columns(reader, [table], ms * 1000)


def test_a_column_that_came_back_names_the_one_with_its_earlier_values(tmp_path: Path) -> None:
    log = log_of((1000, 0), (2000, 1))
    [warning] = warnings(tmp_path, log, 1500)
    assert "'status' is NULL in all rows of that time" in warning["message"]
    assert "or at a time that is no longer known" in warning["message"]
    assert "'cdc_dropped_status'" in warning["remedy"]
    assert warnings(tmp_path, log, 2000) == ()


def test_a_column_declared_later_has_no_earlier_values(tmp_path: Path) -> None:
    log = log_of((1000, 0), (2000, 1), fields=(FIRST, [*FIRST, (5, "note", "string")]))
    [warning] = warnings(tmp_path, log, 1500)
    assert warning["remedy"] == "leave 'note' out, or ask for a later time"


def test_a_column_with_values_of_that_time_is_not_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = "SELECT 7 AS status, TIMESTAMPTZ '1970-01-01 00:00:01+00' AS cdc_committed_at"
    monkeypatch.setattr("cdclake.jobs.reader.duck.scan", lambda *_: values)
    log = log_of((3000, 1))
    assert warnings(tmp_path, log, 1500) == ()
    assert len(warnings(tmp_path, log, 500)) == 1
