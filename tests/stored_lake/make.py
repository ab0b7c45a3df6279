"""Make the archive of a release's lake, at its commit: `python -m tests.stored_lake.make`.

A real lake reads the tables of `tables.sql`, `changes.sql` and `pending.sql`. Its S3, catalog and
checkpoint are stored then, with what the independent reader returns. `later.sql` follows, of which
only Kafka's records and the resulting rows are stored.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
from contextlib import closing
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cdclake import naming
from cdclake.jobs.control import leases
from cdclake.jobs.stream.streaming_query import topic_pattern
from cdclake.local.components import aws
from cdclake.local.components.installed import jar_folder
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LakeState, LocalLake, open_lake
from cdclake.local.lake.spark_jobs import checkpoint_folder
from cdclake.local.process.home import Home
from tests.local.running import RunningLake, lake_in
from tests.recorded.script import Statement, steps
from tests.recorded.topics import read_topics
from tests.source_tree import PROJECT
from tests.stored_lake.archive import pack
from tests.stored_lake.stored import FOLDER, Rows, query, relations

PIPELINE = FOLDER / "pipeline.yaml"
PACKAGES = ("duckdb", "moto", "pyiceberg", "pyspark")
LARGEST = 2_000_000


def make(folder: Path, archive: Path) -> None:
    """Run the lake and write the archive."""
    stored = folder / "stored"
    with lake_in(folder) as running:
        _execute(running, "tables.sql")
        running.run("up", str(PIPELINE))
        _execute(running, "changes.sql", refused=1)
        running.run("job", "apply_changes")
        _execute(running, "pending.sql", refused=1)
        running.run("job", "apply_changes", "--table", "orders", "--table", "order_lines")
        running.run("pause")
        lake = open_lake(Home(running.home))
        stored_rows = _rows(running, lake)
        # A job's lease is stored, as if it had died; by the time of a test it has expired.
        short = patch.object(leases, "LEASE_DURATION_S", 1.0)
        with short, leases.Leases(lake.control, naming.MAINTAIN_JOB).hold("orders"):
            _copy_lake(lake, Home(stored / "home"))
        running.run("resume")
        _execute(running, "later.sql", refused=2)
        running.run("job", "apply_changes")
        later_rows = _rows(running, lake, without_times=True)
        _write_records(lake, stored / "records.jsonl")
    expected = {**_made_by(), "stored": stored_rows, "later": later_rows}
    (stored / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False))
    pack(stored, archive)
    assert archive.stat().st_size < LARGEST, archive.stat().st_size


def _execute(running: RunningLake, script: str, *, refused: int = 0) -> None:
    """Run a script in the source and wait until the lake holds all but the refused rows."""
    with running.connect() as connection:
        for step in steps((FOLDER / script).read_text()):
            assert isinstance(step, Statement)
            connection.execute(step.sql.encode())
    if not LakeState.load(Home(running.home)).plan:
        return
    report = running.run("verify", expect=None)
    different = {t["table"]: t["missing"] + t["extra"] + t["different"] for t in report["tables"]}
    assert different == {"orders": refused, "order_lines": 0, "shipments": 0}, report


def _rows(running: RunningLake, lake: LocalLake, *, without_times: bool = False) -> Rows:
    queries = {name: query(name, without_times) for name in relations(lake.plan)}
    return {name: [texts for [texts] in running.sql(sql)] for name, sql in queries.items()}


def _copy_lake(lake: LocalLake, to: Home) -> None:
    """Copy what an upgrade would find; without passwords, and not paused."""
    checkpoint = checkpoint_folder(lake)
    shutil.copytree(checkpoint, to.data("checkpoints") / checkpoint.name)
    source, target = lake.home.data(aws.NAME), to.data(aws.NAME)
    target.mkdir(parents=True)
    with (
        closing(sqlite3.connect(source / "index.db")) as old,
        closing(sqlite3.connect(target / "index.db", isolation_level=None)) as index,
    ):
        old.backup(index)
        index.execute("delete from secret")
        files = [file for (file,) in index.execute("select file from object")]
        index.execute("pragma journal_mode=delete")
        index.execute("vacuum")
    for file in files:
        (target / "objects" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / "objects" / file, target / "objects" / file)
    name = str(PIPELINE.relative_to(PROJECT))
    replace(LakeState.load(lake.home), paused=False, pipeline_file=name).save(to)


def _write_records(lake: LocalLake, to: Path) -> None:
    """Write the records of the topics that the stream reads."""
    topics = [topic for topic in lake.plan.topics if re.fullmatch(topic_pattern(lake.plan), topic)]
    records = read_topics(lake.kafka, topics)
    in_order = sorted(records, key=lambda r: (r.topic, r.partition, r.offset))
    to.write_text("".join(record.to_line() for record in in_order), encoding="utf-8")


def _made_by() -> dict[str, Any]:
    """Return the commit and the versions, from which the lake comes."""
    log = ("git", "log", "-1", "--format=%H", "--", ".", ":!tests/stored_lake", ":!tests/spark")
    head = subprocess.run(log, cwd=PROJECT, capture_output=True, text=True, check=True)
    versions = {"cdclake": _release(), **{name: version(name) for name in PACKAGES}}
    jars = sorted(jar.stem for jar in jar_folder("spark").glob("*.jar"))
    return {"commit": head.stdout.strip(), "versions": versions, "jars": jars}


def _release() -> str:
    return str(tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"])


def main() -> int:
    """Make the archive in the repository; everything else is gone afterwards."""
    archive = FOLDER / f"lake-{_release()}.tar.gz"
    if archive.exists():
        raise SystemExit(f"{archive} exists; an archive of a release is never made again")
    folder = Path(tempfile.mkdtemp(prefix="cdclake-stored-"))
    try:
        make(folder, archive)
        sys.stdout.write(f"{archive}: {archive.stat().st_size} bytes\n")
    finally:
        stack.purge(Home(folder / "home"))
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
