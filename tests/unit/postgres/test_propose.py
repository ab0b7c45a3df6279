"""From a catalog to a pipeline file that is valid as it stands, and uncommented too."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdclake.config.literals import parse_table_key
from cdclake.config.resolve import load_plan
from cdclake.postgres.candidates import candidate_keys, first_unique, uniqueness_query
from cdclake.postgres.catalog import SourceTable, column_type
from cdclake.postgres.file_lines import scalar
from cdclake.postgres.pipeline_text import pipeline_name, render_pipeline, table_key
from cdclake.postgres.proposal import flowing_columns, needs_candidate
from cdclake.postgres.propose import is_proposable, propose
from cdclake.postgres.source_names import check_names
from tests.unit.postgres.tables import BY_NUMBER, PRIMARY, actual, column, leaf

NASTY = [
    "Order Lines", 'say "hi"', "it's", "Größe", "a.b*[c]", "x" * 63, "a,b", "100%", "日本", "😀",
    "1st", "a: b", "# no", " lead", "trail ", "back\\slash", "new\nline", "tab\t", "{}", "null",
    "~", "yes", "1.5", "0x1f", "<<", "=", "- a", "? a", "!tag", "&a", "*a", "|", "\u2028", "\x7f",
    "..", '"', "'", "`", "@", "2024-01-01", "a#b", "a:b", ".", "%", "\x85", "\ufeff",
]  # fmt: skip


@pytest.mark.parametrize("name", NASTY)
def test_every_name_stands_safely_in_the_file(name: str, tmp_path: Path) -> None:
    # Debezium streams no table of the others.
    of_table = "plain" if check_names(actual(schema=name, table=name)) else name
    table = actual(
        schema=of_table,
        table=of_table,
        columns=(column(name, nullable=False), column("plain")),
        indexes=(replace(PRIMARY, columns=(name,)),),
    )
    path = tmp_path / "p.yaml"
    path.write_text(render_pipeline(name, propose([table], "shop", {})), encoding="utf-8")
    plan = load_plan(path)
    (loaded,) = plan.tables
    assert plan.source_database == name
    assert (loaded.schema, loaded.table) == (of_table, of_table)
    assert [c.source for c in loaded.key_columns] == [name]
    assert parse_table_key(table_key(name, name)) == (name, name)


def text_of(*tables: SourceTable, guessed: Any = None) -> str:
    return render_pipeline("shop", propose(tables, "shop", guessed or {}))


def admitted_by_uncommenting(text: str, path: Path) -> int:
    path.write_text(re.sub(r"^# ", "", text, flags=re.M), encoding="utf-8")
    return len(load_plan(path).tables)


def test_a_refused_table_stands_with_the_lines_that_admit_it(tmp_path: Path) -> None:
    good = replace(actual(), table="good")
    text = text_of(good, actual(identity="n"))
    assert "## public.orders is refused: once published, every UPDATE" in text
    assert "#   public.orders:\n#     key: [id]\n#     replica_identity: default\n" in text
    assert admitted_by_uncommenting(text, tmp_path / "p.yaml") == 2


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"indexes": (BY_NUMBER,)}, "replica_identity: 'index orders_number'"),
        ({"indexes": (replace(BY_NUMBER, name="by No"),)}, "replica_identity: 'index \"by No\"'"),
        ({"indexes": ()}, "replica_identity: full"),
        (
            {"kind": "p", "indexes": (), "leaves": (leaf(), leaf("b", indexes=()))},
            "replica_identity: full",
        ),
        ({"columns": (*actual().columns, column("area", None))}, "area: {exclude: true}"),
        ({"columns": (*actual().columns, column("cdc_op"))}, "cdc_op: {exclude: true}"),
        ({"columns": (*actual().columns, column("_pos"))}, "_pos: {exclude: true}"),
    ],
)
def test_each_refusal_has_its_line(changes: Any, line: str, tmp_path: Path) -> None:
    table = actual(**changes)
    text = text_of(replace(actual(), table="good"), table, guessed={table.id: ("number",)})
    assert re.search(rf"^#  +{re.escape(line)}$", text, re.M), text
    assert admitted_by_uncommenting(text, tmp_path / "p.yaml") == 2


def test_an_identity_the_source_has_is_written_down(tmp_path: Path) -> None:
    full = actual(identity="f")
    index = actual(table="b", indexes=(BY_NUMBER,), identity="i", identity_index="orders_number")
    text = text_of(full, index)
    assert "replica_identity: full" in text
    assert "replica_identity: 'index orders_number'" in text
    assert "is refused" not in text


@pytest.mark.parametrize(
    "changes",
    [
        {"indexes": ()},
        {"persistence": "u"},
        {"inherited": True},
        {"columns": ()},
        {"columns": (column("cdc_id", nullable=False), column("x")),
         "indexes": (replace(PRIMARY, columns=("cdc_id",)),)},
    ],
)  # fmt: skip
def test_what_no_line_admits_says_what_would(changes: Any) -> None:
    (proposal,) = propose([actual(**changes)], "shop", {})
    assert proposal.declared is None
    assert proposal.reason
    assert proposal.remedy


def test_a_column_whose_not_null_is_not_validated_is_changed_in_the_source() -> None:
    columns = (column("id", nullable=False), column("note", nullable=False, unvalidated=True))
    (proposal,) = propose([actual(columns=columns)], "shop", {})
    assert proposal.declared is None and "NOT VALID" in proposal.reason
    assert 'ALTER COLUMN "note" DROP NOT NULL' in proposal.remedy


def test_tables_of_one_name_get_names_of_their_own(tmp_path: Path) -> None:
    tables = [
        actual(schema=schema, table=name)
        for schema, name in [
            ("a", "orders"), ("a", "orders_changes"), ("b", "orders"), ("b", "Orders"),
            ("c", "cdclake_quarantine"), ("c", "x_current"), ("c", "x"),
        ]
    ]  # fmt: skip
    text = text_of(*tables)
    assert "name: b_orders" in text
    assert admitted_by_uncommenting(text, tmp_path / "p.yaml") == len(tables)


def test_what_is_lost_when_unsent_is_proposed_under_identity_full_or_not_at_all() -> None:
    times = column("times", "timestamp[]")
    (proposed,) = propose([actual(columns=(*actual().columns, times))], "shop", {})
    assert "times (timestamp[])" in proposed.reason
    assert proposed.declared is not None
    assert proposed.declared.replica_identity == "full"
    (sparing,) = propose(
        [actual(columns=(*actual().columns, times, column("shape", None)))], "shop", {}
    )
    assert sparing.declared is not None
    assert sparing.declared.excluded == ("shape", "times")


def test_a_topic_belongs_to_one_table() -> None:
    first, second = propose([actual(table="a+b"), actual(table="a*b")], "shop", {})
    assert first.declared is not None
    assert second.declared is None
    assert "shop.public.a_b" in second.reason


def test_only_tables_of_their_own_right_are_proposed() -> None:
    assert is_proposable(actual())
    assert is_proposable(actual(kind="p"))
    for changes in ({"kind": "v"}, {"partition_of": ("a", "b")}, {"schema": "cdclake"}):
        assert not is_proposable(actual(**changes))


def test_candidates_come_from_partitions_indexes_and_columns_in_this_order() -> None:
    table = actual(
        kind="p",
        indexes=(replace(BY_NUMBER, identifies=False),),
        leaves=(leaf(),),
        columns=(
            column("at", "date", nullable=False),
            column("id", nullable=False),
            column("number"),
            column("serial", nullable=False, numbered=True),
            column("doc", "json", nullable=False),
        ),
    )
    assert needs_candidate(table)
    keys = candidate_keys(table, flowing_columns(table))
    assert keys[:4] == [("id",), ("number",), ("serial",), ("at",)]
    assert ("serial", "id") in keys
    assert not any("doc" in key for key in keys)
    query = uniqueness_query(table, keys[:2])
    assert 'count(DISTINCT ("id")) FILTER (WHERE "id" IS NOT NULL)' in query
    assert first_unique(keys[:3], [5, 4, 5, 5]) == ("number",)
    assert first_unique(keys[:1], [5, 4]) is None


@pytest.mark.parametrize(
    ("database", "name"),
    [("shop", "shop"), ("My Shop", "my-shop"), ("1st", "db-1st"), ("日本", "db"), ("x", "x-db"),
     ("a" * 40, "a" * 21), ("a" * 20 + "-b", "a" * 20)],
)  # fmt: skip
def test_the_pipeline_is_named_after_the_database(database: str, name: str) -> None:
    assert pipeline_name(database) == name


def test_scalars_are_plain_where_that_is_safe() -> None:
    assert scalar("public.orders") == "public.orders"
    assert scalar("On") == "'On'"


@pytest.mark.parametrize(
    ("arguments", "spelled"),
    [
        (("integer", False, "b", "pg_catalog", None, 0), "integer"),
        (("numeric(5,2)[]", True, "b", "pg_catalog", None, 1), "numeric(5,2)[]"),
        (("integer[]", True, "b", "pg_catalog", None, 2), "None"),
        (("public.mood", False, "e", "public", None, 0), "enum"),
        (('"My".mood[]', True, "e", "My", None, 1), "enum[]"),
        (("public.small[]", True, "d", "public", None, 1), "None"),
        (("public.citext", False, "b", "public", "citext", 0), "citext"),
        (("vector(3)", False, "b", "ext", "vector", 0), "vector(3)"),
        (("public.citext", False, "b", "public", None, 0), "None"),
        (("interval day to second(3)", False, "b", "pg_catalog", None, 0), "interval"),
        (("box", False, "b", "pg_catalog", None, 0), "None"),
        (("public.pair", False, "c", "public", None, 0), "None"),
        (('"char"', False, "b", "pg_catalog", None, 0), "None"),
    ],
)
def test_types_are_resolved_or_not_known(arguments: Any, spelled: str) -> None:
    assert str(column_type(*arguments)) == spelled


def test_a_partitioned_table_without_a_primary_key_is_proposed_with_a_note() -> None:
    table = actual(kind="p", identity="f", indexes=(BY_NUMBER,), leaves=(leaf(identity="f"),))
    (proposal,) = propose([table], "shop", {})
    assert proposal.declared is not None and not proposal.reason
    assert "primary key" in proposal.note
    assert "with --source and on AWS it is refused" in text_of(table)
    (keyed,) = propose([replace(table, indexes=(PRIMARY, BY_NUMBER))], "shop", {})
    assert not keyed.note
