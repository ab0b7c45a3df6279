"""The text of `up`: it ends with what it changed."""

from __future__ import annotations

from typing import Any

from cdclake.cli.up_text import change_line, up_lines

CHANGE: dict[str, Any] = {
    "table": "artworks", "source": "moma.artworks", "joined": False, "left": False,
    "added_columns": (), "removed_columns": (), "rows": None, "estimated_rows": None,
    "reading": False, "seconds": None,
}  # fmt: skip
ANSWER: dict[str, Any] = {
    "source": None, "kafka": None, "s3": "http://127.0.0.1:1", "clients": "c", "logs": "l",
    "tables": [{"table": "artworks", "source": "moma.artworks"}], "did": [],
}  # fmt: skip


def last_lines(*changed: dict[str, Any], did: tuple[str, ...] = ()) -> list[str]:
    lines = list(up_lines({**ANSWER, "changed": changed, "did": did}))
    return lines[lines.index("") + 1 :]


def test_added_column_and_its_rows() -> None:
    line = change_line(
        CHANGE | {"added_columns": ("rating integer",), "rows": 123899, "seconds": 41.2}
    )
    assert line == "artworks: + rating integer, 123,899 rows read in 41 s"


def test_removed_columns_tables_that_leave_and_rows_that_are_still_read() -> None:
    assert change_line(CHANGE | {"removed_columns": ("bio",)}) == "artworks: - bio"
    assert change_line(CHANGE | {"left": True}) == "artworks: left, its data stays in the lake"
    reading = CHANGE | {"joined": True, "rows": 45000, "estimated_rows": 123899, "reading": True}
    assert last_lines(reading) == [
        "artworks: joined, 45,000 of about 123,899 rows read so far",
        "the rows are still being read: `cdclake status --watch` shows how far they are",
    ]


def test_changes_of_a_table_are_told_once() -> None:
    joined = CHANGE | {"joined": True, "rows": 5}
    assert last_lines(joined, did=("started kafka, which was dead", "artworks joined")) == [
        "started kafka, which was dead",
        "artworks: joined, 5 rows read",
    ]
    assert last_lines() == ["nothing to do: everything runs"]


def test_many_tables_are_summed() -> None:
    changed = [CHANGE | {"table": f"t{n}", "joined": True, "rows": 1000} for n in range(20)]
    assert last_lines(*changed) == ["20 tables: 20 joined, 20,000 rows read"]
    tables = [{"table": f"t{n}", "source": f"s.t{n}"} for n in range(20)]
    lines = list(up_lines({**ANSWER, "tables": tables}))
    assert "tables    20; `cdclake status -v` lists them" in lines


def test_warnings_of_the_source_follow_the_changes() -> None:
    warning = {"message": "server: unlimited", "remedy": "limit it"}
    lines = list(up_lines({**ANSWER, "warnings": [warning]}))
    assert lines[-2:] == [
        "nothing to do: everything runs",
        "warning: server: unlimited; limit it",
    ]
