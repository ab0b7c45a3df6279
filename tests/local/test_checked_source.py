"""Checks of `cdclake doctor --source` on a real PostgreSQL: each one passes, and fails."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from cdclake.check import Check
from cdclake.config.resolve import load_plan
from cdclake.errors import InputError
from cdclake.local import doctor
from cdclake.local.lake.source import prepare_source
from cdclake.local.stream_checks import check_stream
from tests.local.source_database import OWNER, PASSWORD, proposed, run, running_server

pytestmark = pytest.mark.local
POLLED = """
version: 1
name: polled
source: {database: postgres}
tables:
  public.city:
    key: [id]
    columns: {id: integer, at: timestamptz}
    capture: {poll: {by: at, every: rate(1 day)}}
"""


def found(dsn: str) -> dict[str, Check]:
    return {check.name: check for check in doctor.check_database(dsn, None, OWNER)}


def test_a_source_with_its_tables(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE t (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    checks = doctor.check_database(database, plan, OWNER)
    states = [(check.name, check.state) for check in checks]
    assert states == [("source", "ok"), ("wal", "ok"), ("clock", "ok")]
    run(database, "ALTER TABLE t RENAME TO u")
    [source] = [
        check for check in doctor.check_database(database, plan, OWNER) if check.name == "source"
    ]
    assert source.state == "failed" and "public.t" in source.detail and source.remedy


def test_a_server_without_a_plan(database: str) -> None:
    assert found(database)["source"].detail.endswith("wal_level logical")
    with running_server("wal_level=replica", "max_slot_wal_keep_size=-1") as dsn:
        checks = found(f"{dsn}/postgres")
    source, wal = checks["source"], checks["wal"]
    assert (source.state, "wal_level is replica" in source.detail) == ("failed", True)
    assert "wal_level = logical" in source.remedy
    assert (wal.state, "unlimited" in wal.detail) == ("warning", True)


def test_a_database_without_an_encoding(database: str, tmp_path: Path) -> None:
    ascii_only = make_conninfo(database, dbname="ascii_only")
    run(
        database,
        "CREATE DATABASE ascii_only ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C'"
        " TEMPLATE template0",
    )
    try:
        run(ascii_only, "CREATE TABLE t (id int PRIMARY KEY, v text)")
        plan = proposed(ascii_only, tmp_path / "p.yaml")
        assert [table.source for table in plan.tables] == ["public.t"]
        for checked in (None, plan):
            checks = doctor.check_database(ascii_only, checked, OWNER)
            [source] = [check for check in checks if check.state == "failed"]
            assert "SQL_ASCII" in source.detail and "ENCODING 'UTF8'" in source.remedy
        with pytest.raises(InputError, match="SQL_ASCII"):
            prepare_source(ascii_only, plan, embedded=False, owner=OWNER, role_password=PASSWORD)
    finally:
        run(database, "DROP DATABASE ascii_only WITH (FORCE)")


def test_a_source_that_is_only_polled_needs_no_replication(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(POLLED)
    with running_server("wal_level=replica") as server:
        dsn = f"{server}/postgres"
        [missing] = (c for c in doctor.check_database(dsn, load_plan(file), OWNER) if c.remedy)
        assert (missing.name, "public.city" in missing.detail) == ("source", True)
        run(dsn, "CREATE TABLE city (id int PRIMARY KEY, at timestamptz)")
        checks = doctor.check_database(dsn, load_plan(file), OWNER)
    assert [(each.name, each.state) for each in checks] == [("source", "ok"), ("clock", "ok")]


def test_the_slot_and_the_publication_of_a_lake(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE t (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")

    def states() -> dict[str, str]:
        found = list(check_stream(database, plan))
        assert all(bool(check.remedy) == (check.state != "ok") for check in found)
        return {check.name: check.state for check in found}

    assert states() == {"slot": "failed", "wal": "ok", "publication": "failed"}
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    name = plan.source_object
    run(database, f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
    assert states() == {"slot": "warning", "wal": "ok", "publication": "ok"}
    for narrowed in ("SET (publish = 'insert, update')", "DROP TABLE t"):
        run(database, f"ALTER PUBLICATION {name} {narrowed}")
        assert states()["publication"] == "failed"
        prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    run(database, f"SELECT pg_drop_replication_slot('{name}')")


def test_a_clock_that_differs(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(seconds=30)

    monkeypatch.setattr(doctor, "datetime", Late)
    clock = found(database)["clock"]
    assert (clock.state, "by 30." in clock.detail or "by 29." in clock.detail) == ("warning", True)
    assert clock.remedy
