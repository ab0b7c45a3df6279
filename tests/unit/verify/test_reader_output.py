"""Commands print one JSON object on standard output; the reader prints nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import duckdb
import pytest

from cdclake.jobs.reader.duck import Reader
from cdclake.local.reader.query import _refused
from tests.unit.verify.lakes import make_plan, make_table

PROJECT = Path(__file__).resolve().parents[3]
# The installed command is a program given by -c. DuckDB takes that for an interactive session, and
# shows the progress of every query that lasts longer than `progress_bar_time`.
SLOW = """
import json, sys
from pathlib import Path
import duckdb
from cdclake.jobs.reader.duck import Reader
from tests.unit.verify.lakes import make_plan, make_table

READERS
with opened as session:
    session.execute("SET progress_bar_time = 1")
    session.execute("CREATE TABLE t AS SELECT range i FROM range(600000)")
    rows = session.execute("SELECT count(DISTINCT md5(i::VARCHAR)) FROM t").fetchall()
print(json.dumps(rows))
"""
READER = """
opened = Reader(plan=make_plan(make_table()), s3="http://x", glue="http://x", bucket="lake",
                spill=Path(sys.argv[1]))._session()
"""
PLAIN = "opened = duckdb.connect()"


def _output(opened: str, spill: Path) -> str:
    keys = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    done = subprocess.run(
        [sys.executable, "-c", SLOW.replace("READERS", opened), str(spill)],
        cwd=PROJECT,
        env={**os.environ, **dict.fromkeys(keys, "none"), "AWS_DEFAULT_REGION": "eu-west-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_slow_query_prints_no_progress(tmp_path: Path) -> None:
    assert json.loads(_output(READER, tmp_path)) == [[600000]]


def test_duckdb_prints_progress_by_itself(tmp_path: Path) -> None:
    """Otherwise the test above would prove nothing."""
    with pytest.raises(json.JSONDecodeError):
        json.loads(_output(PLAIN, tmp_path))


def test_more_deletes_than_rows_have_a_remedy() -> None:
    message = "Information loss on integer cast: value 18446744073709551614 outside of target"
    lake = cast(Reader, SimpleNamespace(plan=make_plan(make_table())))
    refused = _refused(duckdb.InternalException(message), lake, "select 1")
    assert "more deleted positions than rows" in refused.message
    assert "`cdclake job maintain_tables`" in refused.remedy
