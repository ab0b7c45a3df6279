"""`cdclake connect` on a real lake: each program reads the lake exactly as it is printed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from cdclake.jobs.reader.duck import extension_file
from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1200)]

CREATED = """
create table orders (id bigint primary key, v int);
insert into orders select i, i from generate_series(1, 50) i;
"""
PIPELINE = """\
version: 1
name: connected
source: {database: postgres}
stream: {trigger_seconds: 2}
tables:
  public.orders: {key: [id], columns: {id: bigint, v: integer}}
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLake]:
    folder = tmp_path_factory.mktemp("lake")
    (folder / "connected.yaml").write_text(PIPELINE)
    with lake_in(folder) as running:
        with running.connect() as connection:
            connection.execute(CREATED)
        running.run("up", str(folder / "connected.yaml"))
        with running.connect() as connection:
            connection.execute("delete from orders where id > 47")
        running.assert_equal()
        running.eventually(
            lambda: running.sql("select count(*) from orders where not cdc_deleted") == [[47]]
        )
        yield running


def with_extensions(home: Path) -> Path:
    """Put DuckDB's extensions where INSTALL would download them to."""
    [[platform]] = duckdb.sql("PRAGMA platform").fetchall()
    folder = home / ".duckdb" / "extensions" / f"v{duckdb.__version__}" / platform
    folder.mkdir(parents=True)
    for name in ("avro", "httpfs", "iceberg"):
        shutil.copy(extension_file(name), folder)
    return home


@pytest.mark.parametrize("engine", ["duckdb", "pyiceberg", "spark"])
def test_the_printed_program_counts_the_live_rows(
    lake: RunningLake, engine: str, tmp_path: Path
) -> None:
    program = tmp_path / f"{engine}_program.py"
    program.write_text(lake.run("connect", engine)["snippet"])
    words = ("PATH", "JAVA_HOME", "LANG")
    done = subprocess.run(
        [sys.executable, str(program)],
        env={
            **{word: os.environ[word] for word in words if word in os.environ},
            "HOME": str(with_extensions(tmp_path)),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "47" in done.stdout.split() or "│           47 │" in done.stdout, done.stdout
    secrets = (lake.home / "secrets.properties").read_text().splitlines()
    assert not [line for line in secrets if line.partition("=")[2] in program.read_text()]
