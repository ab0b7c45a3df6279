"""A SQL file in the local lake's own PostgreSQL, as `cdclake source sql` runs it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import psycopg

from cdclake.errors import InputError
from cdclake.local.lake.lake import running_source
from cdclake.local.process.home import Home
from cdclake.postgres.run_script import run_script
from cdclake.postgres.sql_script import read_script, split_script


def run_local_script(home: Home, script: Path, *, keep_owners: bool) -> dict[str, Any]:
    """Run the file as the superuser, in the database that the lake reads; return what was run.

    Raises NotRunning without a lake, and InputError as `split_script` and `run_script` do.
    """
    statements = list(split_script(read_script(script), script.name))
    dsn, is_external = running_source(home)
    if is_external:
        raise InputError("the lake has an external source", "run the file there with psql")
    with psycopg.connect(dsn, autocommit=True) as session:
        done = run_script(session, statements, script.name, keep_owners=keep_owners)
    return {"ok": True, **asdict(done)}
