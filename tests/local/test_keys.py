"""Keys that nothing, or only a deferrable constraint, makes unique; on a real PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from cdclake.errors import InputError
from cdclake.local.lake.introspect import introspect_tables, server_problems
from cdclake.local.lake.source import prepare_source
from tests.local.source_database import OWNER, PASSWORD, proposed, run

pytestmark = pytest.mark.local


def test_a_deferrable_keys_newest_event_may_delete_a_row_that_lives(database: str) -> None:
    """Why it is refused: with any identity the newest event of key 2 is a delete."""
    run(
        database,
        "CREATE TABLE pos (id int PRIMARY KEY DEFERRABLE)",
        "ALTER TABLE pos REPLICA IDENTITY FULL",
        "INSERT INTO pos SELECT generate_series(1, 3)",
    )
    with psycopg.connect(database, autocommit=True) as connection:
        slot = f"keys_{database.rpartition('/')[2]}"
        connection.execute(
            "SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", (slot,)
        )
        connection.execute("UPDATE pos SET id = id + 1")
        rows = connection.execute(
            "SELECT data FROM pg_logical_slot_get_changes(%s, NULL, NULL)", (slot,)
        ).fetchall()
        connection.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
        assert connection.execute("TABLE pos ORDER BY 1").fetchall() == [(2,), (3,), (4,)]
    newest: dict[str, str] = {}
    for (line,) in rows:
        if "old-key" in line:
            old, _, new = line.partition("new-tuple:")
            newest[old.rpartition("id[integer]:")[2].strip()] = "delete"
            newest[new.rpartition("id[integer]:")[2].strip()] = "insert"
    assert newest == {"1": "delete", "2": "delete", "3": "delete", "4": "insert"}


def test_a_deferrable_key_is_refused_until_its_statement_ran(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE pos (id int PRIMARY KEY DEFERRABLE, v text)")
    _, (refused,) = introspect_tables(database, None)
    assert refused.declared is None
    assert "deferrable constraint pos_pkey" in refused.reason
    statement = refused.remedy.removeprefix("run in the source: ")
    run(database, "CREATE TABLE other (id int PRIMARY KEY)")
    text = "id: integer\n", "id: integer\n  public.pos: {key: [id], columns: {id: int, v: text}}\n"
    plan = proposed(database, tmp_path / "p.yaml", lambda old: old.replace(*text, 1))
    with pytest.raises(InputError, match="deferrable constraint pos_pkey") as error:
        prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    assert statement in error.value.remedy
    run(database, statement)
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    _, proposals = introspect_tables(database, None)
    assert all(not proposal.reason for proposal in proposals)


def test_a_key_that_rows_repeat_is_refused_without_its_value(database: str, tmp_path: Path) -> None:
    run(
        database,
        "CREATE TABLE visits (at date, who text)",
        "ALTER TABLE visits REPLICA IDENTITY FULL",
        "INSERT INTO visits VALUES ('2026-01-01', 'ann'), ('2026-01-01', 'bob')",
    )
    _, (visits,) = introspect_tables(database, None)
    assert visits.declared is not None
    assert visits.declared.key == ("who",)  # nullable, but never NULL
    plan = proposed(database, tmp_path / "p.yaml")
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    run(database, "INSERT INTO visits VALUES ('2026-01-02', 'ann')")
    kept = {"public.visits"}
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD, kept=kept)
    with pytest.raises(InputError, match=r'2 rows have the same key \("?who"?\)') as refused:
        prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    assert "HAVING count(*) > 1; then write" in str(refused.value)
    assert "ann" not in str(refused.value)


def test_a_table_without_any_key_names_both_ways(database: str) -> None:
    run(database, "CREATE TABLE t (v text)", "INSERT INTO t VALUES (NULL), (NULL)")
    _, (refused,) = introspect_tables(database, None)
    assert "add a primary key" in refused.remedy
    assert "`replica_identity: full`" in refused.remedy


def test_the_server_of_a_proposal_is_checked(database: str) -> None:
    assert server_problems(database) == []
