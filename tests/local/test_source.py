"""The source's side against a real PostgreSQL: what is set up, what is refused, what is left."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from cdclake.errors import InputError
from cdclake.jobs.runtime import source
from cdclake.jobs.runtime.source import (
    connect,
    is_signalled,
    settled_lsn,
    signal_snapshot,
    wal_position,
    write_marker,
)
from cdclake.local.lake.introspect import introspect_tables
from cdclake.local.lake.source import prepare_source, remove_from_source
from cdclake.postgres.quoting import identifier, qualified
from tests.given_folders import given_folder, needs_files
from tests.local.source_database import (
    OWNER,
    PASSWORD,
    load_dump,
    proposed,
    role_dsn,
    run,
    uncommented,
)

pytestmark = pytest.mark.local

NASTY = [
    "Order Lines", 'say "hi"!', "it's", "select", "Größe", "a.b*[c]", "x" * 63, "a,b", "c;d",
    "100%s", "日本", "1st", "a: b", "# no", " lead", "back\\slash", "new\nline", "{x}", "$do$",
    "null",
]  # fmt: skip


def test_names_of_every_kind_flow(database: str, tmp_path: Path) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for name in NASTY:
            table = f"{identifier(name)}.{identifier(name)}"
            connection.execute(f"CREATE SCHEMA {identifier(name)}".encode())
            connection.execute(
                f"CREATE TABLE {table} ({identifier(name)} int PRIMARY KEY, v text)".encode()
            )
    plan = proposed(database, tmp_path / "p.yaml")
    assert sorted((t.schema, t.table) for t in plan.tables) == sorted((n, n) for n in NASTY)
    for _ in range(2):
        prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    with psycopg.connect(role_dsn(database, plan), autocommit=True) as connection:
        for name in NASTY:
            assert connection.execute(f"TABLE {qualified(name, name)}".encode()).fetchall() == []
    write_marker(role_dsn(database, plan))
    remove_from_source(database, plan, OWNER)
    remove_from_source(database, plan, OWNER)
    assert run(database, "SELECT FROM pg_publication") == []
    assert run(database, "SELECT FROM pg_namespace WHERE nspname = 'cdclake'") == []
    assert run(database, f"SELECT FROM pg_roles WHERE rolname = '{plan.source_object}'") == []


def test_names_that_debezium_cannot_stream_are_refused(database: str, tmp_path: Path) -> None:
    run(
        database,
        "CREATE TABLE \"it''s\" (id int PRIMARY KEY)",
        'CREATE TABLE twins (id int PRIMARY KEY, name text, "Name" text)',
        "CREATE TABLE plain (id int PRIMARY KEY)",
    )
    plan = proposed(database, tmp_path / "p.yaml")
    assert [table.source for table in plan.tables] == ["public.plain"]
    [plain] = plan.tables
    odd = replace(plain, table="it''s")
    twins = replace(plain, table="twins", excluded=("Name",))
    with pytest.raises(InputError) as refused:
        prepare_source(
            database,
            replace(plan, tables=(plain, odd, twins)),
            embedded=True,
            owner=OWNER,
            role_password=PASSWORD,
        )
    message = str(refused.value)
    assert "public.it''s: its name has two adjacent quotation marks" in message
    assert "'name' and 'Name' differ only by case" in message


def test_a_signal_is_found_by_its_request_as_the_connectors_role(
    database: str, tmp_path: Path
) -> None:
    run(database, "CREATE TABLE t (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    role = role_dsn(database, plan)
    assert not is_signalled(role, "mine")
    signal_snapshot(role, plan.tables)
    assert not is_signalled(role, "mine")
    signal_snapshot(role, plan.tables, "mine")
    assert is_signalled(role, "mine")


def test_settled_lsn_waits_for_transactions_in_progress(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is about to commit would be missing from a snapshot, although the WAL has it."""
    run(database, "CREATE TABLE t (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    role = role_dsn(database, plan)
    monkeypatch.setattr(source, "_COMMIT_TIMEOUT_S", 60.0)
    with psycopg.connect(database) as writer, ThreadPoolExecutor(1) as pool:
        writer.execute("INSERT INTO t VALUES (1)")
        before = wal_position(role)
        settled = pool.submit(settled_lsn, role)
        with pytest.raises(TimeoutError):
            settled.result(0.5)
        writer.commit()
        assert before <= settled.result(30) < wal_position(role)
        writer.execute("INSERT INTO t VALUES (2)")
        monkeypatch.setattr(source, "_COMMIT_TIMEOUT_S", 0.1)
        assert settled_lsn(role) > settled.result()


EVERY_KIND = """
CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION ltree;
CREATE TYPE mood AS ENUM ('a'); CREATE TYPE pair AS (a int, b int);
CREATE DOMAIN small AS varchar(10); CREATE DOMAIN smaller AS small;
CREATE DOMAIN price AS numeric(10, 2); CREATE DOMAIN tags AS text[];
CREATE TABLE types (id bigserial PRIMARY KEY, a smaller, b price, c tags, d mood, e mood[],
  f citext, g hstore, h ltree, i timestamptz(3), j numeric(10,2)[], k interval day to second,
  l char(3), m varbit(9), n numeric, o "char"[] GENERATED ALWAYS AS (NULL) STORED);
INSERT INTO types DEFAULT VALUES;
CREATE TABLE boxed (id int PRIMARY KEY, b box, c pair, d int[][], e small[], _pos int,
  cdc_x int, f money);
CREATE TABLE nothing (id int PRIMARY KEY); ALTER TABLE nothing REPLICA IDENTITY NOTHING;
CREATE TABLE late (id int PRIMARY KEY DEFERRABLE, v text);
CREATE TABLE keyless (a int NOT NULL, b int NOT NULL, v text);
INSERT INTO keyless VALUES (1, 1), (1, 2), (2, 1);
CREATE TABLE hopeless (v text); INSERT INTO hopeless VALUES (NULL), (NULL);
CREATE TABLE indexed (id int NOT NULL, v text); CREATE UNIQUE INDEX "by Id" ON indexed (id);
CREATE TABLE chosen (id int NOT NULL, v text); CREATE UNIQUE INDEX chosen_id ON chosen (id);
ALTER TABLE chosen REPLICA IDENTITY USING INDEX chosen_id;
CREATE TABLE "whole" (id int NOT NULL, v text); ALTER TABLE "whole" REPLICA IDENTITY FULL;
INSERT INTO "whole" VALUES (1, ''), (2, '');
CREATE TABLE whole_boxed (id int PRIMARY KEY, b box); ALTER TABLE whole_boxed REPLICA IDENTITY FULL;
CREATE TABLE gone (id int NOT NULL); CREATE UNIQUE INDEX gone_id ON gone (id);
ALTER TABLE gone REPLICA IDENTITY USING INDEX gone_id; DROP INDEX gone_id;
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY);
CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
CREATE VIEW looks AS SELECT 1 AS id;
CREATE TABLE parts (id int, at date NOT NULL, v text) PARTITION BY RANGE (at);
CREATE UNIQUE INDEX parts_key ON parts (at);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE parts_b PARTITION OF parts DEFAULT PARTITION BY RANGE (at);
CREATE TABLE parts_c PARTITION OF parts_b DEFAULT;
CREATE TABLE pkparts (id int, at date, PRIMARY KEY (id, at)) PARTITION BY LIST (at);
CREATE TABLE pkparts_a PARTITION OF pkparts DEFAULT;
CREATE SCHEMA sales; CREATE TABLE sales.nothing (id int PRIMARY KEY);
CREATE TABLE nothing_changes (id int PRIMARY KEY);
CREATE TABLE cdclake_quarantine (id int PRIMARY KEY);
CREATE TABLE "a b" (id int PRIMARY KEY); CREATE TABLE "a*b" (id int PRIMARY KEY);
CREATE TABLE twins (id int PRIMARY KEY, "ID" int);
CREATE TABLE columnless ();
"""
ADMITTED = {
    "chosen", "whole", "pkparts", "child", "nothing_changes", "cdclake_quarantine", "a b",
}  # fmt: skip
NO_LINES = {"hopeless", "late", "unlogged", "parent", "a*b", "columnless", "twins"}


def test_every_kind_of_table_is_admitted_or_refused_with_what_admits_it(
    database: str, tmp_path: Path
) -> None:
    run(database, EVERY_KIND)
    _, proposals = introspect_tables(database, ["public"])
    refused = {p.source.table: p for p in proposals if p.reason}
    assert {p.source.table for p in proposals} - set(refused) == ADMITTED
    assert {name for name, p in refused.items() if p.declared is None} == NO_LINES
    assert all(p.remedy for p in refused.values() if p.declared is None)
    key = {p.source.table: p.declared.key for p in proposals if p.declared}
    assert key["keyless"] == ("a", "b")
    assert key["whole"] == key["indexed"] == key["chosen"] == key["gone"] == ("id",)
    assert key["parts"] == ("at",)


def test_types_are_spelled_as_the_lake_knows_them(database: str, tmp_path: Path) -> None:
    run(database, EVERY_KIND)
    _, proposals = introspect_tables(database, ["public"])
    types = next(p for p in proposals if p.source.table == "types")
    assert types.declared is not None
    assert {column.source: column.type for column in types.declared.columns} == {
        "id": "bigint", "a": "varchar(10)", "b": "numeric(10,2)", "c": "text[]", "d": "enum",
        "e": "enum[]", "f": "citext", "g": "hstore", "h": "ltree", "i": "timestamptz(3)",
        "j": "numeric(10,2)[]", "k": "interval", "l": "char(3)", "m": "varbit(9)", "n": "numeric",
    }  # fmt: skip
    assert types.omitted == ("o",)
    boxed = next(p for p in proposals if p.source.table == "boxed")
    assert boxed.declared is not None
    assert boxed.declared.excluded == ("b", "c", "d", "e", "_pos", "cdc_x")


def test_the_uncommented_file_is_admitted_and_no_update_fails(
    database: str, tmp_path: Path
) -> None:
    run(database, EVERY_KIND)
    plan = proposed(database, tmp_path / "p.yaml", uncommented)
    assert len({table.name for table in plan.tables}) == len(plan.tables)
    done = prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    assert len(done.altered) == 9, done.altered
    assert done.omitted["public.types"] == ("o",)
    again = prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    assert again.altered == ()
    for table in plan.tables:
        column = identifier(table.key_columns[0].source)
        name = qualified(table.schema, table.table)
        run(database, f"UPDATE {name} SET {column} = {column}")
        run(database, f"DELETE FROM {name}")
    with psycopg.connect(role_dsn(database, plan), autocommit=True) as connection:
        connection.execute("SELECT id, f FROM boxed")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT b FROM boxed")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("TABLE hopeless")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM types")
        connection.execute("DELETE FROM cdclake.heartbeat")


def test_a_foreign_source_is_never_altered_and_every_problem_is_said(
    database: str, tmp_path: Path
) -> None:
    run(database, EVERY_KIND)
    plan = proposed(database, tmp_path / "p.yaml", uncommented)
    before = run(database, "SELECT oid, relreplident FROM pg_class ORDER BY oid")
    with pytest.raises(InputError) as refused:
        prepare_source(database, plan, embedded=False, owner=OWNER, role_password=PASSWORD)
    assert 'ALTER TABLE "public"."nothing" REPLICA IDENTITY DEFAULT;' in refused.value.remedy
    statement = 'ALTER TABLE "public"."parts_c" REPLICA IDENTITY USING INDEX "parts_c_at_idx";'
    assert statement in refused.value.remedy
    assert "7 problems" in refused.value.message
    assert run(database, "SELECT oid, relreplident FROM pg_class ORDER BY oid") == before
    assert run(database, f"SELECT FROM pg_roles WHERE rolname = '{plan.source_object}'") == []
    statements = [
        part.strip()
        for line in refused.value.remedy.splitlines()
        for part in line.split("run in the source: ", 1)[1].split(";")
        if part.strip()
    ]
    run(database, *statements)
    with pytest.raises(InputError, match=r"public.parts: .* the table has no primary key"):
        prepare_source(database, plan, embedded=False, owner=OWNER, role_password=PASSWORD)
    run(database, "ALTER TABLE parts ADD PRIMARY KEY (at)")
    prepare_source(database, plan, embedded=False, owner=OWNER, role_password=PASSWORD)


def test_a_table_with_row_level_security_needs_a_role_that_sees_all(
    database: str, tmp_path: Path
) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY)", "ALTER TABLE a ENABLE ROW LEVEL SECURITY")
    plan = proposed(database, tmp_path / "p.yaml", uncommented)
    with pytest.raises(InputError, match="row-level security") as refused:
        prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    statement = f'CREATE ROLE "{plan.source_object}" BYPASSRLS;'
    assert statement in refused.value.remedy
    run(database, statement)
    prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    run(role_dsn(database, plan), "TABLE a")
    remove_from_source(database, plan, OWNER)


@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("postgresql://u:hunter2@127.0.0.1:1/x", "127.0.0.1:1"),
        ("postgresql://u:hunter2@no-such-host.invalid/x", "no-such-host.invalid:5432"),
        ("postgres//u:hunter2@host/x", "DSN"),
        ("host=127.0.0.1 nonsense=hunter2", "DSN"),
    ],
)
def test_an_unreachable_source_is_named_without_its_password(dsn: str, words: str) -> None:
    with pytest.raises(InputError) as refused, connect(dsn):
        pass
    assert words in refused.value.message
    assert "hunter2" not in str(refused.value)
    assert refused.value.remedy


def test_a_wrong_password_is_not_repeated(database: str) -> None:
    wrong = make_conninfo(database, password="hunter2")
    with pytest.raises(InputError, match="password authentication failed") as refused:
        write_marker(wrong)
    assert "hunter2" not in str(refused.value)


@needs_files("pagila")
def test_pagila(database: str, tmp_path: Path) -> None:
    folder = given_folder("pagila")
    for part in ("schema", "data"):
        load_dump(database, folder / f"pagila-{part}.sql")
    _, proposals = introspect_tables(database, None)
    assert {p.source.table for p in proposals if p.reason} == {"country", "payment"}
    assert len(proposals) == 15
    plan = proposed(database, tmp_path / "p.yaml", uncommented)
    done = prepare_source(database, plan, embedded=True, owner=OWNER, role_password=PASSWORD)
    assert len(done.altered) == 10
    run(
        database,
        "UPDATE payment SET amount = amount + 1 WHERE payment_id < 100",
        "UPDATE country SET country = country",
    )


NAMESAKES = """
CREATE SCHEMA types; CREATE SCHEMA other;
CREATE TYPE types.status AS ENUM ('new'); CREATE TABLE status (id int);
CREATE TYPE types.kind AS ENUM ('a'); CREATE TABLE other.kind (id int);
CREATE TYPE types.triggers AS ENUM ('a');
CREATE TABLE "interval" (id int); CREATE TABLE other.point (id int);
CREATE DOMAIN types.amount AS numeric(8,2); CREATE DOMAIN other.amount AS numeric(9,3);
CREATE TYPE types.level AS ENUM ('a'); CREATE TYPE other.level AS ENUM ('b');
CREATE DOMAIN types.email AS text; CREATE DOMAIN other.email AS text;
CREATE TYPE mood AS ENUM ('ok'); CREATE TABLE other.mood (id int);
CREATE TABLE orders (id int PRIMARY KEY, a types.status, b types.status[], c types.kind,
  d types.triggers, e interval, f types.amount, g point, h types.level, i types.level[],
  j types.email, k mood);
"""


def test_types_that_debezium_may_not_find_are_excluded(database: str) -> None:
    run(database, NAMESAKES)
    _, proposals = introspect_tables(database, ["public"])
    [orders] = [each.source for each in proposals if each.source.table == "orders"]
    assert {c.name: c.mistaken_for for c in orders.columns if c.mistaken_for} == {
        "a": ("public.status",),
        "b": ("public.status[]",),
        "c": ("other.kind",),
        "d": ("information_schema.triggers",),
        "e": ('public."interval"',),
        "f": ("other.amount",),
    }
