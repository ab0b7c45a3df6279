"""A table that is truncated while PostgreSQL creates the slot: the failure and its remedy.

PostgreSQL waits twice for running transactions before a new slot is consistent. It does not
remember a rewrite by a transaction that begins and commits during the first wait, and so cannot
decode a change of the table by one that began in the second wait and commits after it.
"""

import re
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.local.running import RunningLake, lake_in

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]

PIPELINE = """
version: 1
name: early
source: {database: postgres}
tables:
  public.emptied: {key: [id], columns: {id: integer, v: text}}
"""


def begin(session: "psycopg.Connection[Any]") -> str:
    """Begin a transaction that writes; its number."""
    session.execute("begin")
    row = session.execute("select pg_current_xact_id()::text").fetchone()
    assert row is not None
    return str(row[0])


def wait_for(lake: RunningLake, session: "psycopg.Connection[Any]", query: str) -> None:
    lake.eventually(lambda: session.execute(query.encode()).fetchone() == (True,), 300)


def waits_for(number: str) -> str:
    """Return a query: does a session wait for the end of that transaction?"""
    return (
        "select count(*) > 0 from pg_locks where locktype = 'transactionid' and not granted"
        f" and transactionid::text = '{number}'"
    )


def up_beside(lake: RunningLake, file: Path) -> threading.Thread:
    """`up` in a thread, whatever becomes of it."""
    words, expected = ("up", str(file)), {"expect": None}
    started = threading.Thread(target=lake.run, args=words, kwargs=expected)
    started.start()
    return started


def truncate_while_the_slot_is_created(lake: RunningLake, file: Path) -> None:
    with lake.connect() as first, lake.connect() as second, lake.connect() as writer:
        with lake.connect() as watcher:
            old = begin(first)
            started = up_beside(lake, file)
            wait_for(lake, watcher, waits_for(old))
            younger = begin(second)  # the second wait's, older than the truncating transaction
            watcher.execute("truncate emptied")
            first.execute("commit")
            wait_for(lake, watcher, waits_for(younger))
            begin(writer)
            writer.execute("insert into emptied values (2, 'during the second wait')")
            second.execute("commit")
            consistent = "select confirmed_flush_lsn is not null from pg_replication_slots"
            wait_for(lake, watcher, consistent)
            writer.execute("commit")
        started.join()


def test_the_slot_is_dropped_as_the_failure_says(tmp_path: Path) -> None:
    file = tmp_path / "early.yaml"
    file.write_text(PIPELINE)
    with lake_in(tmp_path) as lake:
        with lake.connect() as source:
            source.execute("create table emptied (id int primary key, v text)")
            source.execute("insert into emptied values (1, 'before')")
        truncate_while_the_slot_is_created(lake, file)

        answer = lake.run("up", str(file), expect=None)
        assert not answer["ok"]
        assert "could not map filenumber" in answer["error"]["message"]
        [table] = lake.run("status", expect=None)["tables"]
        remedy = answer["error"]["remedy"]
        assert remedy in table["last_error"]

        [statement] = re.findall("`(SELECT .*?)`", remedy)
        with lake.connect() as source:
            lake.eventually(lambda: _dropped(source, statement), 60)
        lake.run("up", str(file))
        lake.assert_equal()
        assert lake.sql("select id, v from emptied_current") == [[2, "during the second wait"]]


def _dropped(source: "psycopg.Connection[Any]", statement: str) -> bool:
    """Drop the slot; the connector, which tries again and again, may hold it for a moment."""
    try:
        source.execute(statement.encode())
    except psycopg.errors.ObjectInUse:
        return False
    return True
