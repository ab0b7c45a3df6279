"""A SQL file in a real database: its values arrive as psql would insert them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.local.lake import source_script
from cdclake.local.process.home import Home
from tests.local.source_database import run

pytestmark = pytest.mark.local


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_carriage_returns_of_values_reach_the_source(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(source_script, "running_source", lambda _: (database, False))
    script = tmp_path / "seed.sql"
    lines = (
        "-- a dump",
        "CREATE TABLE t (id int PRIMARY KEY, v text);",
        "INSERT INTO t VALUES (1, 'a\r\nb'), (2, 'c\rd');",
        "COPY t FROM stdin;",
        "3\te\\r\\nf",
        "\\.",
        "COPY t FROM stdin (FORMAT csv);",
        '4,"g\r\nh"',
        "\\.",
        "",
    )
    script.write_bytes(end.join(lines).encode())
    done = source_script.run_local_script(Home(tmp_path), script, keep_owners=False)
    assert done["statements"] == 4
    rows = [(1, "a\r\nb"), (2, "c\rd"), (3, "e\r\nf"), (4, "g\r\nh")]
    assert run(database, "SELECT * FROM t ORDER BY id") == rows
