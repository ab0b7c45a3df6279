"""A SQL file in the local lake's own PostgreSQL, as `cdclake source sql` runs it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import psycopg

from cdclake.errors import InputError, NotRunning
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LakeState
from cdclake.local.process.home import Home
from cdclake.postgres.run_script import run_script
from cdclake.postgres.sql_script import split_script


def run_local_script(home: Home, script: Path, *, keep_owners: bool) -> dict[str, Any]:
    """Run the file as the superuser of the running lake's PostgreSQL; return what was run.

    Raises NotRunning without a lake, and InputError as `split_script` and `run_script` do.
    """
    try:
        text = script.read_text("utf-8")
    except OSError as error:
        raise InputError(f"could not read {script}: {error.strerror}", "give a SQL file") from None
    statements = list(split_script(text, script.name))
    if not stack.is_up(home):
        raise NotRunning(f"no lake is running in {home.path}", "start one with `cdclake up`")
    source = stack.endpoints(home, embedded_postgres=not LakeState.load(home).external).source
    if source is None:
        raise InputError("the lake has an external source", "run the file there with psql")
    with psycopg.connect(**asdict(source), autocommit=True) as session:
        done = run_script(session, statements, script.name, keep_owners=keep_owners)
    return {"ok": True, **asdict(done)}
