"""A SQL file in a real database: its values arrive as psql would insert them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdclake.errors import InputError
from cdclake.local.lake import source_script
from cdclake.local.process.home import Home
from tests.local.source_database import run

pytestmark = pytest.mark.local


@pytest.fixture(autouse=True)
def source(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the test's database for that of the lake."""
    monkeypatch.setattr(source_script, "running_source", lambda _: (database, False))


def run_file(script: Path, *lines: str) -> None:
    """Write the lines and run them."""
    script.write_text("\n".join(lines) + "\n")
    source_script.run_local_script(Home(script.parent), script, keep_owners=False)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_carriage_returns_of_values_reach_the_source(
    database: str, tmp_path: Path, end: str
) -> None:
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


@pytest.mark.parametrize(
    "loss", ["SELECT 1 / 0;", "SELECT pg_terminate_backend(pg_backend_pid());"]
)
def test_a_failed_transaction_is_undone_from_its_first_line(
    database: str, tmp_path: Path, loss: str
) -> None:
    lines = (
        "CREATE TABLE t (id int PRIMARY KEY);",
        "BEGIN;",
        "COPY t FROM stdin;",
        "1",
        "\\.",
        "COMMIT;",
        "START TRANSACTION;",
        "INSERT INTO t VALUES (2);",
        loss,
        "COMMIT;",
    )
    with pytest.raises(InputError) as caught:
        run_file(tmp_path / "seed.sql", *lines)
    assert caught.value.message.startswith("seed.sql:9: ")
    assert "the 4 statements before the transaction from line 7 are done" in caught.value.remedy
    assert run(database, "SELECT * FROM t") == [(1,)]
    run_file(tmp_path / "rest.sql", *lines[6:8], lines[9])
    assert run(database, "SELECT * FROM t ORDER BY id") == [(1,), (2,)]


@pytest.mark.parametrize("value", [3, 1])
def test_a_transaction_without_an_end_is_undone(database: str, tmp_path: Path, value: int) -> None:
    """As psql does at the end of a file, also if the deferred constraint would refuse COMMIT."""
    lines = (
        "CREATE TABLE t (id int UNIQUE DEFERRABLE INITIALLY DEFERRED);",
        "INSERT INTO t VALUES (1);",
        "BEGIN;",
        f"INSERT INTO t VALUES ({value});",
    )
    with pytest.raises(InputError, match=r"seed\.sql:3: the transaction has no end"):
        run_file(tmp_path / "seed.sql", *lines)
    assert run(database, "SELECT * FROM t") == [(1,)]
