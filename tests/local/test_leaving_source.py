"""A lake with an external source: early refusals of `up`, and what `down` keeps and removes."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from cdclake.local.components.connect import DIRECT
from tests.certificates import certified
from tests.local.running import RunningLake, lake_in
from tests.local.source_database import run, running_server
from tests.local.test_prepare_source import speak_tls

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

FILE = """version: 1
name: leaving
source: {database: leaving}
lake: {database: leaving}
tables:
  public.t: {key: [id], columns: {id: integer, v: text}}
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with TLS, and the DSN of a client that verifies it."""
    certificate, key = certified("127.0.0.1")
    authority = tmp_path_factory.mktemp("authority") / "ca.pem"
    authority.write_text(certificate)
    with running_server("max_slot_wal_keep_size=-1") as server:  # PostgreSQL's default
        speak_tls(f"{server}/postgres", certificate, key)
        run(f"{server}/postgres", "CREATE DATABASE leaving")
        dsn = f"{server}/leaving?sslmode=verify-full&sslrootcert={authority}"
        run(dsn, "CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'one')")
        yield dsn


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("file") / "leaving.yaml"
    path.write_text(FILE)
    return str(path)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    with lake_in(tmp_path_factory.mktemp("leaving")) as running:
        yield running


@pytest.mark.parametrize(
    "wrong", [{"password": "hunter2"}, {"dbname": "none"}, {"port": 1}, {"host": "none.invalid"}]
)
def test_a_wrong_source_is_refused_before_anything_starts(
    lake: RunningLake, source: str, file: str, wrong: dict[str, str], tmp_path: Path
) -> None:
    dsn = make_conninfo(source, **wrong)
    said = lake.run("init", "--from-db", dsn, "-o", str(tmp_path / "p.yaml"), expect=2)["error"]
    refused = lake.run("up", file, expect=2, CDCLAKE_SOURCE_DSN=dsn)["error"]
    assert refused == said
    assert lake.processes() == []
    assert "source_dsn" not in (lake.home / "secrets.properties").read_text()


def test_a_refused_table_leaves_nothing_running(
    lake: RunningLake, source: str, file: str, tmp_path: Path
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(FILE.replace("public.t:", "public.missing:"))
    error = lake.run("up", str(other), expect=2, CDCLAKE_SOURCE_DSN=source)["error"]
    assert "the source has no such table" in error["message"]
    assert lake.processes() == []
    lake.run("status", expect=3)


def test_up_warns_of_unlimited_wal_and_the_connector_verifies_the_source(
    lake: RunningLake, source: str, file: str
) -> None:
    (warning,) = lake.run("up", file, CDCLAKE_SOURCE_DSN=source)["warnings"]
    assert "max_slot_wal_keep_size is -1 (unlimited)" in warning["message"]
    assert "ALTER SYSTEM SET max_slot_wal_keep_size" in warning["remedy"]
    connect = lake.endpoints.connect
    url = f"{connect.url}/connectors/leaving-source/config"
    with DIRECT.open(urllib.request.Request(url, headers=connect.headers)) as answer:
        config = json.load(answer)
    assert config["database.sslmode"] == "verify-full"
    assert config["database.sslrootcert"].endswith("/ca.pem")
    sessions = run(
        source, "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
        " WHERE usename = 'cdclake_leaving'"
    )  # fmt: skip
    assert sessions and all(encrypted for (encrypted,) in sessions)


def test_down_with_keep_slot_goes_on_without_reading_again(
    lake: RunningLake, source: str, file: str
) -> None:
    changes = len(lake.sql("select * from t_changes"))
    answer = lake.run("down", "--keep-slot")
    assert answer["dropped"] == [] and answer["kept"] == ["slot cdclake_leaving"]
    run(source, "UPDATE t SET v = 'two'", "UPDATE t SET v = 'three'")
    lake.run("up", file)
    lake.assert_equal()
    assert len(lake.sql("select * from t_changes")) == changes + 2
    assert lake.run("status")["epoch"] == 1


def test_up_without_a_stream_leaves_no_connector_running(
    lake: RunningLake, source: str, file: str
) -> None:
    """A new worker starts the connectors that its topic has; on a streaming lake one runs."""
    for before in ("up", "down"):
        if before == "down":
            lake.run("down", "--keep-slot")
        lake.run("up", "--no-stream")
        slots = "SELECT active FROM pg_replication_slots WHERE slot_name = 'cdclake_leaving'"
        assert run(source, slots) == [(False,)]
        assert not lake.is_running("stream")
        status = lake.run("status", expect=1)
        assert "up --no-stream" in status["attention"][0]
        assert lake.run("resume", expect=3)["error"]["remedy"] == "run `cdclake up` first"
        run(source, f"UPDATE t SET v = '{before}'")
        lake.run("up", file)
        lake.assert_equal()
    assert lake.run("status")["epoch"] == 1


def test_down_says_what_it_drops_and_purge_forgets_the_login(
    lake: RunningLake, source: str, tmp_path: Path
) -> None:
    secrets = lake.home / "secrets.properties"
    dropped = lake.run("down")["dropped"]
    assert {"slot cdclake_leaving", "publication cdclake_leaving"} <= set(dropped)
    assert run(source, "SELECT FROM pg_replication_slots WHERE slot_name = 'cdclake_leaving'") == []
    assert "source_dsn=" in secrets.read_text(), "the next up goes on with it"
    bulk = tmp_path / "bulk.yaml"
    bulk.write_text(
        FILE.replace("{database: leaving}", "{database: leaving, snapshot: {mode: bulk}}", 1)
    )
    lake.run("up", str(bulk))
    assert lake.run("status")["epoch"] == 2
    lake.assert_equal()
    lake.run("down", "--purge")
    assert "source_dsn" not in secrets.read_text()
