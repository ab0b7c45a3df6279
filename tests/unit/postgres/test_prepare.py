"""The statements that prepare a source and those that take everything out again."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import replace
from typing import Any

import pytest

from cdclake.plan import Table
from cdclake.polling import Polling
from cdclake.postgres import teardown
from cdclake.postgres.catalog import SourceTable
from cdclake.postgres.prepare import PublicationState, polled_lists, prepare
from cdclake.postgres.quoting import identifier, literal, qualified
from cdclake.postgres.scram import scram_verifier
from tests.unit.postgres.tables import actual, column, declared, plan

OWN = {("cdclake", "heartbeat"): None, ("cdclake", "signal"): None}
WHOLE = {**OWN, ("public", "orders"): None}


def statements(
    source: SourceTable | None = None, table: Table | None = None, **changes: Any
) -> list[str]:
    source = source or actual()
    settings = {
        "database": "shop", "password_verifier": "SCRAM", "mark": "cdclake a b",
        "publication": PublicationState(), **changes,
    }  # fmt: skip
    return [s.sql for s in prepare(plan(table or declared()), {source.id: source}, **settings)]


def test_a_first_run_makes_everything() -> None:
    made = "\n".join(statements())
    for words in (
        'CREATE SCHEMA IF NOT EXISTS "cdclake"',
        'CREATE TABLE IF NOT EXISTS "cdclake"."heartbeat"',
        'CREATE TABLE IF NOT EXISTS "cdclake"."signal"',
        'CREATE ROLE "cdclake_shop"',
        'ALTER ROLE "cdclake_shop" REPLICATION',
        "LOGIN PASSWORD 'SCRAM'",
        """COMMENT ON ROLE "cdclake_shop" IS 'cdclake a b'""",
        'GRANT USAGE ON SCHEMA "public"',
        'GRANT SELECT ON "public"."orders" TO "cdclake_shop"',
        'CREATE PUBLICATION "cdclake_shop" FOR TABLE "cdclake"."heartbeat", "cdclake"."signal",'
        ' "public"."orders" WITH (publish_via_partition_root = true,'
        " publish = 'insert, update, delete, truncate')",
    ):
        assert words in made


def test_an_equal_publication_is_left_alone() -> None:
    state = PublicationState(True, False, True, WHOLE)
    assert not any("PUBLICATION" in sql for sql in statements(publication=state))


def test_a_table_that_the_publication_has_lost_is_noticed() -> None:
    lost = PublicationState(True, False, True, OWN)
    assert lost.lacks(declared())
    whole, every = PublicationState(True, False, True, WHOLE), replace(lost, all_tables=True)
    assert not any(state.lacks(declared()) for state in (whole, every, PublicationState()))
    filtered = replace(whole, filtered=frozenset({actual().id}))
    narrowed = [filtered, *(replace(state, right=False) for state in (whole, every))]
    assert all(state.lacks(declared()) for state in narrowed)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (PublicationState(True, False, True, OWN), ["SET TABLE"]),
        (PublicationState(True, False, True, WHOLE, frozenset({actual().id})), ["SET TABLE"]),
        (PublicationState(True, False, False, WHOLE), ["SET (publish_via"]),
        (PublicationState(True, True, True, {}), ["DROP PUBLICATION", "CREATE PUBLICATION"]),
    ],
)
def test_a_publication_is_changed_where_it_differs(state: PublicationState, words: str) -> None:
    made = [sql for sql in statements(publication=state) if "PUBLICATION" in sql]
    assert len(made) == len(words)
    assert all(word in sql for sql, word in zip(made, words, strict=True))


def test_what_is_left_out_is_neither_published_nor_granted() -> None:
    source = actual(columns=(*actual().columns, column("secret")))
    made = "\n".join(statements(source, declared(excluded=("secret",))))
    assert 'GRANT SELECT ("id", "number", "ctid", "tableoid", "xmin", "cmin") ON' in made
    assert '"public"."orders" ("id", "number") WITH' in made
    assert "secret" not in made


def polled(table: Table) -> Table:
    return replace(table, delivery="poll", polling=Polling(by="id", every="rate(5 minutes)"))


def test_polls_may_read_every_declared_column_also_generated_ones() -> None:
    """Polls select generated columns, which the stream does not have."""
    total = column("total", generated=True)
    table = polled(declared(("id", "integer"), ("total", "integer"), excluded=("number",)))
    source = actual(columns=(*actual().columns, total))
    lists = polled_lists(replace(plan(), tables=(), polled=(table,)), {source.id: source})
    assert lists == {source.id: ("id", "total")}
    every = polled(declared(("id", "integer"), ("number", "integer"), ("total", "integer")))
    lists = polled_lists(replace(plan(), tables=(), polled=(every,)), {source.id: source})
    assert lists == {source.id: None}


def test_polls_of_a_query_read_all_columns_of_a_table_that_is_polled_too() -> None:
    table = polled(declared(("id", "integer"), excluded=("number",)))
    query = replace(table, table="q", name="q")
    query = replace(query, polling=replace(query.poll, query="SELECT", reads=(actual().id,)))
    for polls in ((table, query), (query, table)):
        made = replace(plan(), tables=(), polled=polls)
        assert polled_lists(made, {actual().id: actual()}) == {actual().id: None}


def test_the_role_of_polled_queries_gets_the_search_path_of_the_preparing_login() -> None:
    made = statements(query_schemas=["public", "a b"])
    assert 'GRANT USAGE ON SCHEMA "a b" TO "cdclake_shop"' in made
    assert (
        'ALTER ROLE "cdclake_shop" IN DATABASE "shop"'
        ' SET search_path = pg_catalog, "public", "a b"' in made
    )
    assert any("SET search_path = pg_catalog" in sql for sql in statements(query_schemas=[]))
    assert not any("search_path" in sql for sql in statements())


def test_what_is_no_longer_declared_is_taken_back() -> None:
    granted = [("public", "old"), ("public", "orders"), ("cdclake", "signal")]
    made = statements(granted=granted)
    assert 'REVOKE ALL ON "public"."old" FROM "cdclake_shop"' in made
    assert not any("REVOKE" in sql and '"cdclake".' in sql for sql in made)


def test_tables_are_kept_from_truncates_before_rights_on_them_change() -> None:
    made = statements(granted=[("public", "orders")])
    locked = made.index('LOCK TABLE ONLY "public"."orders" IN ACCESS SHARE MODE NOWAIT')
    assert not any('ON "public"' in sql for sql in made[:locked])


def test_rds_roles_are_granted_replication() -> None:
    made = "\n".join(statements(replication_grant="rds_replication"))
    assert 'GRANT "rds_replication" TO "cdclake_shop"' in made
    assert 'ALTER ROLE "cdclake_shop" REPLICATION' not in made


def test_nothing_that_prepares_blocks_writers() -> None:
    source = actual()
    made = prepare(
        plan(), {source.id: source}, database="shop", password_verifier="", mark="",
        publication=PublicationState(),
    )  # fmt: skip
    assert not any(statement.blocks_writers for statement in made)


def test_taking_out_drops_only_what_is_there() -> None:
    name = "cdclake_shop"
    assert "NOT active" in teardown.drop_slot(name).sql
    assert "IF EXISTS" in teardown.drop_publication(name).sql
    assert "CASCADE" not in teardown.drop_schema().sql
    assert "DROP OWNED BY" in teardown.drop_role(name).sql


def test_a_verifier_proves_the_password_of_rfc_7677() -> None:
    verifier = scram_verifier("pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    stored, server = (base64.b64decode(part) for part in verifier.split("$")[2].split(":"))
    exchange = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = base64.b64encode(hmac.digest(server, exchange, "sha256"))
    assert signature == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    mask = hmac.digest(stored, exchange, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, mask, strict=True))
    assert hashlib.sha256(client_key).digest() == stored


@pytest.mark.parametrize("password", ["", "pässword", "line\n"])
def test_a_password_that_needs_saslprep_is_not_taken(password: str) -> None:
    with pytest.raises(ValueError, match="ASCII"):
        scram_verifier(password, b"salt")


@pytest.mark.parametrize(
    ("name", "quoted"),
    [("a", '"a"'), ('a"b', '"a""b"'), ("a'b", '"a\'b"'), ("a.b", '"a.b"'), ("select", '"select"')],
)
def test_identifiers_are_always_quoted(name: str, quoted: str) -> None:
    assert identifier(name) == quoted
    assert qualified("s", name) == f'"s".{quoted}'


def test_literals_hold_quotes_and_backslashes() -> None:
    assert literal("it's") == "'it''s'"
    assert literal("a\\'b") == "E'a\\\\''b'"


@pytest.mark.parametrize("bad", ["", "a\0b"])
def test_what_is_no_name_is_not_quoted(bad: str) -> None:
    with pytest.raises(ValueError, match="name"):
        identifier(bad)
