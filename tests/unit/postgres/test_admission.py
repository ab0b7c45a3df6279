"""What a source must be for a declared table to flow: every refusal and its remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdclake.plan import Column
from cdclake.postgres.admission import check_result, check_table
from cdclake.postgres.catalog import SourceTable, UniqueIndex
from cdclake.postgres.file_lines import renamed_line
from cdclake.postgres.identity import alterations
from cdclake.postgres.new_partitions import check_new_partitions
from cdclake.postgres.published import (
    as_named_now,
    omitted_columns,
    published_columns,
    undeclared_columns,
)
from cdclake.postgres.refusal import Refusal, refused
from tests.unit.postgres.tables import BY_NUMBER, PRIMARY, actual, column, declared, leaf

ROLE = "cdclake_shop"
FULL = {"replica_identity": "full", "replica_identity_declared": True}
DEFAULT = {"replica_identity": "default", "replica_identity_declared": True}
BY_INDEX = {
    "replica_identity": "index",
    "replica_identity_index": "orders_number",
    "replica_identity_declared": True,
}
COLUMNS = actual().columns
DEFERRABLE = replace(PRIMARY, identifies=False, immediate=False)


def only(refusals: list[Refusal]) -> Refusal:
    assert len(refusals) == 1, refusals
    return refusals[0]


def test_what_is_as_declared_is_admitted() -> None:
    assert check_table(declared(), actual(), role=ROLE) == []
    assert check_table(declared(), actual(identity="f"), role=ROLE) == []


def test_a_missing_table_is_answered_with_near_ones() -> None:
    known = [("public", "Orders"), ("sales", "orders"), ("public", "people")]
    refusal = only(check_table(declared(), None, role=ROLE, known=known))
    assert "no such table" in refusal.message
    assert "did you mean sales.orders or public.Orders?" in refusal.remedy


@pytest.mark.parametrize(
    ("changes", "words", "remedy"),
    [
        ({"kind": "v"}, "a view", "tables beneath"),
        ({"kind": "f"}, "a foreign table", ""),
        ({"partition_of": ("public", "o")}, "a partition of public.o", "declare public.o"),
        ({"persistence": "u"}, "unlogged", 'ALTER TABLE "public"."orders" SET LOGGED;'),
        ({"persistence": "t"}, "temporary", ""),
        ({"inherited": True}, "inherit", ""),
        ({"kind": "p", "leaves": (leaf(kind="f"),)}, "foreign", "DETACH PARTITION"),
        ({"kind": "p", "leaves": (leaf(persistence="u"),)}, "unlogged", "SET LOGGED"),
        ({"owned": False}, "does not own", "owner"),
        ({"row_security": True}, "row-level security", "BYPASSRLS"),
        ({"columns": COLUMNS[:1]}, "no column 'number'", "remove `number`"),
        (
            {"columns": (COLUMNS[0], column("number", "text"))},
            "declared integer, but has the type text",
            "write `number: text`",
        ),
        (
            {"columns": (COLUMNS[0], column("number", None))},
            "the type box",
            "`number: {exclude: true}`",
        ),
        (
            {"columns": (COLUMNS[0], column("number", generated=True))},
            "generated",
            "remove `number`",
        ),
        (
            {"columns": (COLUMNS[0], column("number", nullable=False, unvalidated=True))},
            "a constraint that is NOT VALID",
            'ALTER TABLE "public"."orders" ALTER COLUMN "number" DROP NOT NULL;',
        ),
        ({"identity": "n"}, "NOTHING", "`replica_identity: default`"),
        ({"indexes": ()}, "no primary key", "`replica_identity: full`"),
        (
            {"indexes": (DEFERRABLE,)},
            "deferrable constraint orders_pkey",
            'ALTER TABLE "public"."orders" DROP CONSTRAINT "orders_pkey",'
            ' ADD CONSTRAINT "orders_pkey" PRIMARY KEY ("id");',
        ),
        (
            {"indexes": (DEFERRABLE,), "identity": "f"},
            "two rows may have the same key",
            'ADD CONSTRAINT "orders_pkey" PRIMARY KEY ("id");',
        ),
        (
            {"kind": "p", "indexes": (), "identity": "f", "leaves": (leaf(indexes=(DEFERRABLE,)),)},
            "deferrable",
            'ALTER TABLE "public"."orders_1" DROP CONSTRAINT "orders_pkey"',
        ),
        ({"identity": "i"}, "index of its replica identity is gone", "`replica_identity: default`"),
        (
            {"kind": "p", "leaves": (leaf(), leaf("orders_2", indexes=()))},
            "of its partition public.orders_2 would fail",
            'ALTER TABLE "public"."orders_2" REPLICA IDENTITY FULL',
        ),
        (
            {"kind": "p", "leaves": (leaf(), leaf("orders_2", identity="n"))},
            "of its partition public.orders_2 would fail",
            'ALTER TABLE "public"."orders_2" REPLICA IDENTITY DEFAULT',
        ),
    ],
)
def test_what_cannot_flow_is_refused_with_its_remedy(changes: Any, words: str, remedy: str) -> None:
    refusal = only(check_table(declared(), actual(**changes), role=ROLE))
    assert words in refusal.message
    assert remedy in refusal.remedy
    assert refusal.remedy


def test_row_level_security_is_no_matter_to_a_role_that_sees_all() -> None:
    assert check_table(declared(), actual(row_security=True), role=ROLE, sees_all_rows=True) == []


def test_a_key_beside_the_identity_is_refused() -> None:
    source = actual(indexes=(PRIMARY, BY_NUMBER))
    refusal = only(check_table(declared(key=("number",)), source, role=ROLE))
    assert "does not contain the key (number)" in refusal.message
    assert "`replica_identity: index orders_number`" in refusal.remedy
    chosen = replace(source, identity="i", identity_index="orders_number")
    assert check_table(declared(key=("number",)), chosen, role=ROLE) == []
    assert check_table(declared(key=("number",)), replace(source, identity="f"), role=ROLE) == []


@pytest.mark.parametrize("kind", ["integer[]", "hstore"])
def test_key_that_cannot_be_read_in_chunks_is_refused(kind: str) -> None:
    [refusal] = check_table(
        declared(("id", kind), ("number", "integer")),
        actual(columns=(column("id", kind, nullable=False), column("number", nullable=False))),
        role="cdclake",
    )
    assert f"its key has id ({kind})" in refusal.message
    assert "write `key:`" in refusal.remedy


@pytest.mark.parametrize(
    ("kind", "reason"), [("varbit(4)", "leading zeros"), ("timetz", "in UTC"), ("bit(4)", "")]
)
def test_a_key_whose_values_collide_in_events_is_refused(kind: str, reason: str) -> None:
    refusals = check_table(
        declared(("id", kind), ("number", "integer")),
        actual(columns=(column("id", kind, nullable=False), column("number", nullable=False))),
        role="cdclake",
    )
    messages = [r.message for r in refusals if f"its key has id ({kind})" in r.message]
    assert [reason in message for message in messages] == [True] * bool(reason)


def test_a_part_of_the_key_is_no_key() -> None:
    wide = UniqueIndex(name="orders_pkey", columns=("id", "number"), primary=True)
    refusal = only(check_table(declared(), actual(indexes=(wide,)), role=ROLE))
    assert "no unique index is exactly on the key" in refusal.message
    assert "`key: [id, number]`" in refusal.remedy


@pytest.mark.parametrize(("wish", "sql"), [(FULL, "FULL"), (BY_INDEX, 'USING INDEX "part"')])
def test_a_declared_identity_is_set_on_every_partition(wish: Any, sql: str) -> None:
    part = replace(BY_NUMBER, name="part", root="orders_number")
    source = actual(
        kind="p",
        indexes=(PRIMARY, BY_NUMBER),
        leaves=(leaf(indexes=(part,)), leaf("done", identity=sql[0].lower().replace("u", "i"))),
    )
    source = replace(source, leaves=(source.leaves[0], replace(source.leaves[1], indexes=(part,))))
    if sql != "FULL":
        done = replace(source.leaves[1], identity_index="part")
        source = replace(source, leaves=(source.leaves[0], done))
    key = ("id",) if sql == "FULL" else ("number",)
    table = declared(key=key, **wish)
    assert check_table(table, source, role=ROLE, may_alter=True) == []
    changes = [statement.sql for statement in alterations(table, source)]
    assert changes[1:] == [f'ALTER TABLE "public"."orders_1" REPLICA IDENTITY {sql}']
    assert all(statement.blocks_writers for statement in alterations(table, source))
    refusal = only(check_table(table, source, role=ROLE))
    assert all(f"{change};" in refusal.remedy for change in changes)


def test_an_identity_that_cannot_be_had_is_refused_even_where_it_could_be_set() -> None:
    for wish in (DEFAULT, BY_INDEX):
        source = actual(indexes=())
        refusal = only(check_table(declared(**wish), source, role=ROLE, may_alter=True))
        assert "`replica_identity: full`" in refusal.remedy


@pytest.mark.parametrize("wish", [{}, FULL, DEFAULT])
def test_a_deferrable_key_is_refused_whatever_the_identity(wish: Any) -> None:
    """Identity full would admit it, and the lake would lose rows."""
    for identity in "dfn":
        source = actual(indexes=(DEFERRABLE,), identity=identity)
        refusal = only(check_table(declared(**wish), source, role=ROLE, may_alter=True))
        assert "deferrable" in refusal.message
        assert "full" not in refusal.remedy
    immediate = replace(PRIMARY, name="also", primary=False)
    source = actual(indexes=(DEFERRABLE, immediate), identity="f")
    assert check_table(declared(), source, role=ROLE) == []


def test_a_column_list_never_makes_an_update_fail() -> None:
    table = declared(("id", "integer"), excluded=("number",))
    assert check_table(table, actual(), role=ROLE) == []
    refusal = only(check_table(table, actual(identity="f"), role=ROLE))
    assert 'FULL logs every column, but "number" must not leave' in refusal.message
    part = declared(("number", "integer"), key=("number",))
    source = actual(indexes=(BY_NUMBER,), identity="i", identity_index="orders_number")
    assert check_table(part, source, role=ROLE) == []
    wide = replace(BY_NUMBER, columns=("number", "id"))
    refused_one = check_table(part, replace(source, indexes=(wide, BY_NUMBER)), role=ROLE)
    assert any("needs id" in refusal.message for refusal in refused_one)


@pytest.mark.parametrize(
    ("spelling", "lost"),
    [
        ("timestamp[]", True), ("numeric(5,2)[]", True), ("enum[]", True), ("smallint[]", True),
        ("bit(129)", True), ("varbit", True), ("vector(3)", True),
        ("bit", False), ("bit(128)", False), ("varbit(40)", False), ("text[]", False),
        ("uuid[]", False), ("date[]", False), ("numeric", False), ("tsvector", False),
    ],
)  # fmt: skip
def test_a_value_that_would_be_lost_when_unsent_needs_identity_full(
    spelling: str, lost: bool
) -> None:
    source = actual(columns=(*COLUMNS, column("x", spelling)))
    columns = (("id", "integer"), ("number", "integer"), ("x", spelling))
    table = declared(*columns)
    refusals = check_table(table, source, role=ROLE)
    if lost:
        refusal = only(refusals)
        assert f"x ({spelling})" in refusal.message
        assert "`replica_identity: full`" in refusal.remedy
    else:
        assert refusals == []
    assert check_table(table, replace(source, identity="f"), role=ROLE) == []
    assert check_table(declared(*columns, **FULL), source, role=ROLE, may_alter=True) == []
    assert check_table(declared(excluded=("x",)), source, role=ROLE) == []


def test_an_excluded_column_has_to_exist() -> None:
    table = declared(excluded=("secret",))
    assert "no column 'secret'" in only(check_table(table, actual(), role=ROLE)).message


def test_postgresql_18_fails_updates_over_generated_columns() -> None:
    source = actual(identity="f", columns=(*COLUMNS, column("total", generated=True)))
    assert check_table(declared(), source, role=ROLE, version=170000) == []
    refusal = only(check_table(declared(), source, role=ROLE, version=180000))
    assert "PostgreSQL 18" in refusal.message


def test_columns_are_listed_only_where_some_are_left_out() -> None:
    generated = actual(columns=(*COLUMNS, column("total", generated=True)))
    assert published_columns(declared(), generated) is None
    assert omitted_columns(declared(), generated) == ("total",)
    more = actual(columns=(*COLUMNS, column("secret"), column("total", generated=True)))
    assert published_columns(declared(), more) == ("id", "number")
    assert omitted_columns(declared(), more) == ("secret", "total")


def test_all_refusals_come_as_one_error() -> None:
    error = refused([Refusal("a", "is x", "do y"), Refusal("b", "is z", "do w")])
    assert error.exit_code == 2
    assert "1. a: is x\n2. b: is z" in error.message
    assert error.remedy == "1. do y\n2. do w"


RENAMED = declared(("id", "integer"), ("number", "integer"))
RENAMED = replace(
    RENAMED,
    columns=(
        RENAMED.columns[0],
        replace(RENAMED.columns[1], source="nr", renamed_from=("number",)),
    ),
)


@pytest.mark.parametrize("present", ["number", "nr"])
def test_a_column_is_found_under_its_old_and_its_new_name(present: str) -> None:
    source = actual(columns=(COLUMNS[0], column(present), column("more")))
    assert check_table(RENAMED, source, role=ROLE) == []
    assert published_columns(RENAMED, source) == ("id", present)
    assert omitted_columns(RENAMED, source) == undeclared_columns(RENAMED, source) == ("more",)
    assert as_named_now(RENAMED, source.by_name).columns[1].source == present


def test_another_column_of_the_old_name_stays_in_the_database() -> None:
    source = actual(columns=(COLUMNS[0], column("nr"), column("number", "text")))
    assert published_columns(RENAMED, source) == ("id", "nr")
    assert undeclared_columns(RENAMED, source) == ("number",)


@pytest.mark.parametrize("present", ["number", "nr"])
def test_columns_are_listed_where_one_was_renamed(present: str) -> None:
    """B16: a column that takes the earlier name later must not be published by itself."""
    source = actual(columns=(COLUMNS[0], column(present)))
    assert published_columns(RENAMED, source) == ("id", present)
    assert published_columns(declared(), actual()) is None


@pytest.mark.parametrize("present", ["number", "nr"])
@pytest.mark.parametrize(
    ("wish", "source"),
    [
        ({}, actual(identity="f")),
        (FULL, actual()),
        ({}, actual(kind="p", leaves=(leaf(), leaf("orders_2", identity="f")))),
    ],
)
def test_identity_full_allows_a_rename_and_no_list(
    present: str, wish: Any, source: SourceTable
) -> None:
    table = replace(RENAMED, **wish)
    source = replace(source, columns=(COLUMNS[0], column(present)))
    assert check_table(table, source, role=ROLE, may_alter=True) == []
    assert published_columns(table, source) is None


def test_identity_full_and_a_column_with_an_earlier_name_are_refused() -> None:
    source = actual(identity="f", columns=(COLUMNS[0], column("nr"), column("number", "text")))
    refusal = only(check_table(RENAMED, source, role=ROLE))
    assert '"number" must not leave the source' in refusal.message
    assert 'rename "number" in the source' in refusal.remedy
    assert "declare" not in refusal.remedy
    more = replace(source, columns=(*source.columns, column("more")))
    refusal = only(check_table(RENAMED, more, role=ROLE))
    assert 'declare "more" too, and rename "number"' in refusal.remedy


def test_for_a_column_that_is_gone_the_renaming_is_written_out() -> None:
    source = actual(columns=(COLUMNS[0], column("nr"), column("text", "text")))
    refusal = only(check_table(declared(), source, role=ROLE))
    assert "no column 'number'" in refusal.message
    assert "write `nr: {type: integer, renamed_from: number}` in its place" in refusal.remedy


def test_the_line_of_a_renaming_keeps_mask_type_and_every_earlier_name() -> None:
    once = Column(source="mail", name="mail", type="varchar(20)", mask="truncate", truncate_to=3)
    line = renamed_line(once, "e-mail")
    assert line == "'e-mail': {type: 'varchar(20)', mask: 'truncate(3)', renamed_from: mail}"
    twice = Column(source="b", name="a", type="text", mask="hash", renamed_from=("a",))
    assert renamed_line(twice, "c") == "c: {type: text, mask: hash, renamed_from: [a, b]}"


@pytest.mark.parametrize(
    ("changes", "words", "remedy"),
    [
        ({"indexes": ()}, "DEFAULT, and the table has no primary key", "give it a primary key"),
        ({"indexes": (replace(PRIMARY, columns=("number",)),)}, "lack the key (id)", "[number]"),
    ],
)
def test_partitions_that_no_trigger_follows_need_a_primary_key(
    changes: Any, words: str, remedy: str
) -> None:
    source = actual(**{"kind": "p", "identity": "f", "leaves": (leaf(identity="f"),), **changes})
    assert check_table(declared(), source, role=ROLE) == []
    refusal = only(check_new_partitions(declared(), source))
    assert words in refusal.message and remedy in refusal.remedy
    assert check_new_partitions(declared(), replace(source, indexes=(PRIMARY,))) == []
    assert check_new_partitions(declared(), replace(source, kind="r", leaves=())) == []


@pytest.mark.parametrize(
    ("kind", "found", "words", "remedy"),
    [
        ("numeric(6,2)", "numeric", "", ""),
        ("text", "varchar(5)", "", ""),
        ("enum", "text", "", ""),
        ("enum[]", "text[]", "", ""),
        ("enum[]", "enum[]", "", ""),
        ("enum", "integer", "returns the type integer", '(...)::text AS "id"'),
        ("enum", "text[]", "returns the type text[]", '(...)::text AS "id"'),
        ("uuid", "text", "returns the type text", '(...)::uuid AS "id"'),
        ("bigint", "integer", "returns the type integer", "write `id: integer`"),
        ("numeric", "numeric[]", "returns the type numeric[]", '(...)::numeric AS "id"'),
        ("text", None, "returns the type box", '(...)::text AS "id"'),
        ("timestamp", "timestamptz", "timestamptz", "(...) AT TIME ZONE"),
    ],
)
def test_a_querys_column_needs_the_declared_type(
    kind: str, found: str | None, words: str, remedy: str
) -> None:
    refusals = check_result(declared(("id", kind)), {"id": column("id", found)})
    if words:
        assert words in only(refusals).message and remedy in only(refusals).remedy
    else:
        assert refusals == []
