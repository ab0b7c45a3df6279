"""Columns that the connector takes under earlier names, and those that it no longer takes."""

from __future__ import annotations

from dataclasses import replace

from cdclake.debezium.connector import SourceAddress, connector_config
from cdclake.plan import Column, Plan, Table

TABLE = Table(
    schema="public", table="t", name="t", topic="x.public.t", key=("id",),
    columns=(
        Column(source="id", name="id", type="bigint"),
        Column(source="email", name="mail", type="text", renamed_from=("mail",)),
    ),
)  # fmt: skip


def included(table: Table) -> str:
    plan = Plan(name="x", source_database="d", lake_database="l", tables=(table,))
    address = SourceAddress(
        host="h", port=5432, user="u", password="p", database="d", sslmode="prefer"
    )
    config = connector_config(plan, address, epoch=1, mask_salt="", max_queue_bytes=1)
    return config["column.include.list"]


def test_a_renamed_column_is_taken_under_each_name() -> None:
    assert included(TABLE).endswith(",(?-i)public[.]t[.](?:id|email|mail)")


def test_an_excluded_column_of_an_earlier_name_is_not_taken() -> None:
    """B16: another column has the earlier name by now, and the file excludes it."""
    assert included(replace(TABLE, excluded=("mail",))).endswith("public[.]t[.](?:id|email)")
