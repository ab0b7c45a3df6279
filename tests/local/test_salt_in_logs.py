"""The salt of masks at a source that logs all statements with their parameters."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.conninfo import make_conninfo

from cdclake.jobs.poll.row_reader import RowReader
from cdclake.jobs.verify import source_rows
from tests.local.source_database import running_server

pytestmark = pytest.mark.local

SALT = r"pep per\'=x"
HASHED = "encode(sha256(convert_to(current_setting('cdclake.mask_salt') || 'a', 'UTF8')), 'hex')"
DIGEST = hashlib.sha256(f"{SALT}a".encode()).hexdigest()


def value(connection: psycopg.Connection[tuple[Any, ...]], query: str) -> tuple[Any, ...]:
    """The only row of a query."""
    return connection.execute(query.encode()).fetchone() or ()


def polled(dsn: str, snapshot: str) -> list[str]:
    """The value that a task of a poll reads."""
    reader = RowReader(
        dsn=dsn, authorities="", salt=SALT, snapshot=snapshot, types=(pa.string(),),
        search_path="SELECT 1", query=f"SELECT {HASHED} AS c0",
    )  # fmt: skip
    chunks = pa.RecordBatch.from_pydict({"condition": ["true"]})
    return [value for batch in reader.read([chunks]) for value in batch.column(0).to_pylist()]


def test_no_log_of_the_source_has_the_salt() -> None:
    with running_server("log_statement=all") as server:
        dsn = make_conninfo(f"{server}/postgres", options="-c work_mem=5MB")
        with psycopg.connect(dsn) as driver:
            driver.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            [folder] = value(driver, "SHOW data_directory")
            [snapshot] = value(driver, "SELECT pg_export_snapshot()")
            assert polled(dsn, snapshot) == [DIGEST]
        with source_rows.session(dsn, SALT) as connection:
            assert value(connection, f"SELECT {HASHED}, current_setting('work_mem')") == (
                DIGEST, "5MB",
            )  # fmt: skip
        log = (Path(folder).parents[2] / "postgres.log").read_text()
    assert HASHED in log
    assert "pep" not in log


def test_a_login_without_masks_that_need_it_has_no_salt(database: str) -> None:
    with source_rows.session(database, "") as connection:
        [found] = value(connection, "SELECT current_setting('cdclake.mask_salt', true)")
    assert not found
