"""The source database of a running lake, as `psql` and `source sql` reach it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from cdclake.errors import InputError, NotRunning
from cdclake.local.components import postgres
from cdclake.local.lake.lake import LakeState, running_source, without_password
from cdclake.local.lake.source_tls import secured
from cdclake.local.process import ports
from cdclake.local.process.home import Home
from tests.unit.local.declared_processes import declare


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """The home of a lake whose processes are only declared: nothing here asks them."""
    found = Home(tmp_path / "home")
    found.create()
    ports.assign(found, set())
    return found


def test_it_is_the_database_that_the_pipeline_reads(home: Home) -> None:
    declare(home, postgres.NAME)
    dsn, is_external = running_source(home)
    assert (conninfo_to_dict(dsn)["dbname"], is_external) == (postgres.DATABASE, False)
    LakeState(database="shop").save(home)
    assert conninfo_to_dict(running_source(home)[0])["dbname"] == "shop"


def test_an_external_source_is_the_one_that_was_given(home: Home) -> None:
    declare(home, "kafka")
    LakeState(external=True).save(home)
    home.remember("source_dsn", "postgresql://reader:p%40ss@127.0.0.1:6543/theirs")
    dsn, is_external = running_source(home)
    assert is_external
    shown, password = without_password(dsn)
    assert password == "p@ss" and "password" not in shown and "dbname=theirs" in shown


def test_a_lake_without_a_database_and_one_that_does_not_run_say_so(home: Home) -> None:
    with pytest.raises(NotRunning, match="no lake is running"):
        running_source(home)
    declare(home, "aws", "firehose")
    with pytest.raises(InputError, match="has no source database"):
        running_source(home)


@pytest.mark.parametrize(
    "shell",
    [
        {"PGSSLMODE": "require"},
        {"PGSSLROOTCERT": "system"},
        {"PGSSLMODE": "verify-full"},
        {"PGHOSTADDR": "10.9.9.9"},
    ],
)
def test_the_own_database_is_reached_without_tls_whatever_the_shell_says(
    home: Home, shell: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in shell.items():
        monkeypatch.setenv(name, value)
    declare(home, postgres.NAME)
    dsn, _ = running_source(home)
    connection = pq.PGconn.connect_start(f"{secured(dsn)} host=127.0.0.1 port=1".encode())
    found = {o.keyword: o.val for o in connection.info}
    assert (found[b"sslmode"], found[b"hostaddr"]) == (b"disable", b"127.0.0.1")
    assert b"sslmode" not in connection.error_message
    with pytest.raises(psycopg.OperationalError, match="refused"):
        postgres.answers(home, 1)
