"""The source's side against a real PostgreSQL: what is set up, what is refused, what is left."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from cdclake.config.resolve import load_plan
from cdclake.errors import InputError
from cdclake.plan import Plan
from cdclake.postgres.pipeline_text import render_pipeline
from cdclake.postgres.quoting import identifier, qualified
from local.source import (
    confirmed_lsn,
    connect,
    prepare_source,
    read_publication,
    remove_from_source,
    slot_wal,
    write_marker,
)
from local.survey import survey
from tests.local.source_database import load_dump, running_server

pytestmark = pytest.mark.local

PASSWORD = "role-secret-1"
NASTY = [
    "Order Lines", 'say "hi"', "it's", "select", "Größe", "a.b*[c]", "x" * 63, "a,b", "c;d",
    "100%s", "日本", "1st", "a: b", "# no", " lead", "back\\slash", "new\nline", "{x}", "$do$",
    "null",
]  # fmt: skip

_numbers = count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as dsn:
        yield dsn


@pytest.fixture
def database(server: str) -> Iterator[str]:
    """The DSN of a fresh database; its pipelines are named after it, so slots never collide."""
    name = f"shop{next(_numbers)}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    yield f"{server}/{name}"


def run(dsn: str, *statements: str) -> list[tuple[Any, ...]]:
    """The rows of the last statement."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def proposed(dsn: str, path: Path, edit: Callable[[str], str] = str) -> Plan:
    """The plan of the file that `init` would write, edited; it has to be valid."""
    name, proposals = survey(dsn, None)
    path.write_text(edit(render_pipeline(name, proposals)), encoding="utf-8")
    return load_plan(path)


def uncommented(text: str) -> str:
    return "\n".join(line.removeprefix("# ") for line in text.splitlines())


def role_dsn(dsn: str, plan: Plan) -> str:
    return make_conninfo(dsn, user=plan.source_object, password=PASSWORD)


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
        prepare_source(database, plan, embedded=True, role_password=PASSWORD)
    with psycopg.connect(role_dsn(database, plan), autocommit=True) as connection:
        for name in NASTY:
            assert connection.execute(f"TABLE {qualified(name, name)}".encode()).fetchall() == []
    write_marker(role_dsn(database, plan))
    remove_from_source(database, plan)
    remove_from_source(database, plan)
    assert run(database, "SELECT FROM pg_publication") == []
    assert run(database, "SELECT FROM pg_namespace WHERE nspname = 'cdclake'") == []
    assert run(database, f"SELECT FROM pg_roles WHERE rolname = '{plan.source_object}'") == []


EVERY_KIND = """
CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION ltree;
CREATE TYPE mood AS ENUM ('a'); CREATE TYPE pair AS (a int, b int);
CREATE DOMAIN small AS varchar(10); CREATE DOMAIN smaller AS small;
CREATE DOMAIN price AS numeric(10, 2); CREATE DOMAIN tags AS text[];
CREATE TABLE types (id bigserial PRIMARY KEY, a smaller, b price, c tags, d mood, e mood[],
  f citext, g hstore, h ltree, i timestamptz(3), j numeric(10,2)[], k interval day to second,
  l char(3), m varbit(9), n numeric, o "char"[] GENERATED ALWAYS AS (NULL) STORED);
INSERT INTO types DEFAULT VALUES;
CREATE TABLE boxed (id int PRIMARY KEY, b box, c pair, d int[][], e small[], "Id" int, _pos int,
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
CREATE TABLE columnless ();
"""
ADMITTED = {
    "types", "chosen", "whole", "pkparts", "child", "nothing_changes", "cdclake_quarantine", "a b",
}  # fmt: skip
NO_LINES = {"hopeless", "unlogged", "parent", "a*b", "columnless"}


def test_every_kind_of_table_is_admitted_or_refused_with_what_admits_it(
    database: str, tmp_path: Path
) -> None:
    run(database, EVERY_KIND)
    _, proposals = survey(database, ["public"])
    refused = {p.source.table: p for p in proposals if p.reason}
    assert {p.source.table for p in proposals} - set(refused) == ADMITTED
    assert {name for name, p in refused.items() if p.declared is None} == NO_LINES
    assert all(p.remedy for p in refused.values() if p.declared is None)
    key = {p.source.table: p.declared.key for p in proposals if p.declared}
    assert key["keyless"] == ("a", "b")
    assert key["whole"] == key["indexed"] == key["chosen"] == key["gone"] == key["late"] == ("id",)
    assert key["parts"] == ("at",)


def test_types_are_spelled_as_the_lake_knows_them(database: str, tmp_path: Path) -> None:
    run(database, EVERY_KIND)
    _, proposals = survey(database, ["public"])
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
    assert boxed.declared.excluded == ("b", "c", "d", "e", "Id", "_pos", "cdc_x")


def test_the_uncommented_file_is_admitted_and_no_update_fails(
    database: str, tmp_path: Path
) -> None:
    run(database, EVERY_KIND)
    plan = proposed(database, tmp_path / "p.yaml", uncommented)
    assert len({table.name for table in plan.tables}) == len(plan.tables)
    done = prepare_source(database, plan, embedded=True, role_password=PASSWORD)
    assert len(done.altered) == 9, done.altered
    assert done.omitted["public.types"] == ("o",)
    again = prepare_source(database, plan, embedded=True, role_password=PASSWORD)
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
        prepare_source(database, plan, embedded=False, role_password=PASSWORD)
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
    prepare_source(database, plan, embedded=False, role_password=PASSWORD)


def test_the_publication_follows_the_declaration(database: str, tmp_path: Path) -> None:
    run(
        database,
        "CREATE TABLE a (id int PRIMARY KEY, secret text, n int)",
        "CREATE TABLE b (id int PRIMARY KEY)",
    )
    both = proposed(database, tmp_path / "p.yaml")
    one = proposed(
        database,
        tmp_path / "q.yaml",
        lambda text: text.replace("secret: text", "secret: {exclude: true}").split("  public.b")[0],
    )
    name = both.source_object

    def published() -> dict[tuple[str, str], Any]:
        with connect(database) as connection:
            state = read_publication(connection, name)
            assert state.right
            return dict(state.tables or {})

    own = {("cdclake", "heartbeat"): None, ("cdclake", "signal"): None}
    everything = {**own, ("public", "a"): None, ("public", "b"): None}
    prepare_source(database, both, embedded=True, role_password=PASSWORD)
    assert published() == everything
    prepare_source(database, one, embedded=True, role_password=PASSWORD)
    assert published() == {**own, ("public", "a"): ("id", "n")}
    with psycopg.connect(role_dsn(database, both), autocommit=True) as connection:
        connection.execute("SELECT id, n FROM a")
        for hidden in ("SELECT secret FROM a", "TABLE b"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(hidden.encode())
    run(database, f"ALTER PUBLICATION {name} SET (publish = 'insert')")
    prepare_source(database, both, embedded=True, role_password=PASSWORD)
    assert published() == everything
    run(database, f"DROP PUBLICATION {name}", f"CREATE PUBLICATION {name} FOR ALL TABLES")
    prepare_source(database, both, embedded=True, role_password=PASSWORD)
    assert published() == everything


def test_no_writer_waits_while_a_reader_delays_the_change(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY)", "ALTER TABLE a REPLICA IDENTITY NOTHING")
    plan = proposed(database, tmp_path / "p.yaml", uncommented)
    slowest = 0.0
    with psycopg.connect(database) as reader:
        reader.execute("TABLE a")  # its lock stays until the transaction ends
        worker = threading.Thread(
            target=prepare_source,
            args=(database, plan),
            kwargs={"embedded": True, "role_password": PASSWORD},
        )
        worker.start()
        with psycopg.connect(database, autocommit=True) as writer:
            for number in range(300):
                start = time.monotonic()
                writer.execute("INSERT INTO a VALUES (%s)", (number,))
                slowest = max(slowest, time.monotonic() - start)
                time.sleep(0.01)
        assert worker.is_alive()
    worker.join(timeout=30)
    assert run(database, "SELECT relreplident::text FROM pg_class WHERE relname = 'a'") == [("d",)]
    assert slowest < 1.0


@pytest.mark.parametrize("identity", ["FULL", "USING INDEX parts_key"])
def test_partitions_made_later_take_updates_too(
    database: str, tmp_path: Path, identity: str
) -> None:
    run(
        database,
        "CREATE TABLE parts (id int NOT NULL, v text) PARTITION BY RANGE (id)",
        "CREATE UNIQUE INDEX parts_key ON parts (id)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)",
        f"ALTER TABLE parts REPLICA IDENTITY {identity}",
        f"ALTER TABLE parts_1 REPLICA IDENTITY {identity.replace('parts_key', 'parts_1_id_idx')}",
    )
    plan = proposed(database, tmp_path / "p.yaml")
    assert prepare_source(database, plan, embedded=True, role_password=PASSWORD).altered == ()
    run(
        database,
        "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20)",
        "CREATE TABLE parts_3 PARTITION OF parts DEFAULT PARTITION BY LIST (id)",
        "CREATE TABLE parts_4 (id int NOT NULL, v text)",
        "ALTER TABLE parts_3 ATTACH PARTITION parts_4 FOR VALUES IN (30)",
        "INSERT INTO parts VALUES (1), (11), (30)",
        "UPDATE parts SET v = 'x'",
    )
    assert prepare_source(database, plan, embedded=True, role_password=PASSWORD).altered == ()
    remove_from_source(database, plan)
    assert run(database, "SELECT FROM pg_event_trigger") == []


def test_a_table_with_row_level_security_needs_a_role_that_sees_all(
    database: str, tmp_path: Path
) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY)", "ALTER TABLE a ENABLE ROW LEVEL SECURITY")
    plan = proposed(database, tmp_path / "p.yaml", uncommented)
    with pytest.raises(InputError, match="row-level security") as refused:
        prepare_source(database, plan, embedded=True, role_password=PASSWORD)
    statement = f'CREATE ROLE "{plan.source_object}" BYPASSRLS;'
    assert statement in refused.value.remedy
    run(database, statement)
    prepare_source(database, plan, embedded=True, role_password=PASSWORD)
    run(role_dsn(database, plan), "TABLE a")
    remove_from_source(database, plan)


def test_another_lakes_stream_is_not_taken_over(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    slot = plan.source_object
    prepare_source(database, plan, embedded=False, role_password=PASSWORD)
    run(database, f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    reader = psycopg.pq.PGconn.connect(
        make_conninfo(role_dsn(database, plan), replication="database").encode()
    )
    options = f"proto_version '1', publication_names '{slot}'"
    reader.exec_(f"START_REPLICATION SLOT {slot} LOGICAL 0/0 ({options})".encode())
    with pytest.raises(InputError, match="another lake streams"):
        prepare_source(database, plan, embedded=False, role_password=PASSWORD)
    prepare_source(database, plan, embedded=False, role_password=PASSWORD, own_stream=True)
    remove_from_source(database, plan)
    assert run(database, "SELECT FROM pg_replication_slots") == []
    reader.finish()


def test_slot_and_marker_are_measured_and_the_slot_goes(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    slot = plan.source_object
    prepare_source(database, plan, embedded=True, role_password=PASSWORD)
    assert confirmed_lsn(database, slot) is None
    assert slot_wal(database, slot) == (0, 4 * 1024**3)
    run(database, f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    confirmed = confirmed_lsn(database, slot)
    first, second = write_marker(database, "one"), write_marker(database)
    assert confirmed is not None
    assert confirmed < first < second
    assert slot_wal(database, slot)[0] > 0
    assert prepare_source(database, plan, embedded=True, role_password=PASSWORD).slot_exists
    with psycopg.connect(role_dsn(database, plan), autocommit=True) as session:
        remove_from_source(database, plan)
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    assert run(database, "SELECT FROM pg_replication_slots") == []


def test_what_is_not_ours_in_the_schema_stays(database: str, tmp_path: Path) -> None:
    run(database, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE SCHEMA cdclake")
    run(database, "CREATE TABLE cdclake.notes (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    prepare_source(database, plan, embedded=False, role_password=PASSWORD)
    remove_from_source(database, plan)
    rows = run(database, "SELECT tablename::text FROM pg_tables WHERE schemaname = 'cdclake'")
    assert rows == [("notes",)]


def test_an_owner_without_superuser_can_prepare_and_leave(database: str, tmp_path: Path) -> None:
    name = f"owner{next(_numbers)}"
    run(database, f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
    run(database, "CREATE TABLE a (id int PRIMARY KEY)")
    plan = proposed(database, tmp_path / "p.yaml")
    dsn = make_conninfo(database, user=name, password="x")
    with pytest.raises(InputError) as refused:
        prepare_source(dsn, plan, embedded=False, role_password=PASSWORD)
    for problem in ("may not create a schema", "may not make the role", "REPLICATION", "not own"):
        assert problem in refused.value.message
    run(
        database,
        f"GRANT CREATE ON DATABASE {plan.source_database} TO {name}",
        f"ALTER ROLE {name} CREATEROLE REPLICATION",
        f"ALTER TABLE a OWNER TO {name}",
    )
    for _ in range(2):
        prepare_source(dsn, plan, embedded=False, role_password=PASSWORD)
    run(role_dsn(database, plan), "TABLE a")
    remove_from_source(dsn, plan)
    assert run(database, f"SELECT FROM pg_roles WHERE rolname = '{plan.source_object}'") == []


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


@pytest.mark.skipif("CDCLAKE_PAGILA" not in os.environ, reason="CDCLAKE_PAGILA names no folder")
def test_pagila(database: str, tmp_path: Path) -> None:
    folder = Path(os.environ["CDCLAKE_PAGILA"])
    for part in ("schema", "data"):
        load_dump(database, folder / f"pagila-{part}.sql")
    _, proposals = survey(database, None)
    assert {p.source.table for p in proposals if p.reason} == {"country", "payment"}
    assert len(proposals) == 15
    plan = proposed(database, tmp_path / "p.yaml", uncommented)
    done = prepare_source(database, plan, embedded=True, role_password=PASSWORD)
    assert len(done.altered) == 10
    run(
        database,
        "UPDATE payment SET amount = amount + 1 WHERE payment_id < 100",
        "UPDATE country SET country = country",
    )
