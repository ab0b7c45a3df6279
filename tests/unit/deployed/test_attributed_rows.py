"""Failed rows name no table: a redrive appends none to a changelog that may not be the row's."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import boto3
import pytest

from cdclake import naming
from cdclake.config.resolve import load_plan
from cdclake.debezium import refusals
from cdclake.debezium.changelog_rows import Place
from cdclake.firehose.rows import DeliveredRows, encode
from cdclake.iceberg.schemas import changes_schema
from cdclake.plan import Plan
from cdclake.redrive.catalog_changelogs import read_changelogs
from tests.unit.deployed.erasing import in_memory
from tests.unit.deployed.redriving import NOW, Stream, fail, redrive

pytestmark = pytest.mark.usefixtures("redrive_deployed")

HEAD = "version: 1\nname: shop\nsource: {database: shop}\n"
SALES = "firehose: {domains: {sales: {}}}\n"
PLACE = Place(partition=0, offset=11)


def plan_of(folder: Path, *tables: str, head: str = HEAD) -> Plan:
    file = folder / "shop.yaml"
    file.write_text(f"{head}tables:\n" + "".join(f"  public.{table}\n" for table in tables))
    return load_plan(file)


def entry(table: str, columns: str, *, domain: str | None = "sales") -> str:
    where = f"domain: {domain}, " if domain else ""
    return f"{table}: {{delivery: firehose, {where}key: [id], columns: {{{columns}}}}}"


ORDERS = entry("orders", "id: bigint, note: text")
ITEMS = entry("items", "id: bigint, note: text, qty: integer")
LINES = entry("lines", "id: bigint, note: text")


def in_sales(folder: Path, *tables: str) -> Plan:
    return plan_of(folder, *tables, head=HEAD + SALES)


def row_of(plan: Plan, table: str, op: str, **image: Any) -> bytes:
    """The row that the function makes of an event of the table."""
    source = {"schema": "public", "table": table, "lsn": 500, "txId": 7}
    event = {
        "op": op, "before": image if op == "d" else None, "after": None if op == "d" else image,
        "source": {**source, "sequence": '["400","500"]', "ts_us": NOW - 1_000_000},
        naming.EPOCH: "1",
    }  # fmt: skip
    decoded = DeliveredRows(plan).decode(json.dumps(event).encode(), PLACE, NOW, {})
    assert decoded is not None
    return encode(decoded[1]).encode()


def columns_of(plan: Plan) -> dict[str, list[str]]:
    """The catalog's changelogs, those of the plan's tables."""
    return {t.changes: [name for name, _ in changes_schema(t, plan).columns] for t in plan.tables}


@pytest.mark.parametrize("op", ["c", "d"])
def test_rows_of_a_table_that_left_a_domain_are_quarantined(
    stream: Stream, tmp_path: Path, op: str
) -> None:
    before, after = in_sales(tmp_path, ORDERS, ITEMS), in_sales(tmp_path, ORDERS)
    raw = row_of(before, "items", op, id=7, note="item", qty=3)
    fail("iceberg-failed", "sales", [raw])
    redrive(stream, of=after, changelogs=lambda: columns_of(before))
    assert stream.rows("orders_changes") == []
    [kept] = stream.rows(naming.QUARANTINE)
    assert base64.b64decode(kept["value"]) == raw
    assert (kept["reason"], kept["table"]) == (refusals.NO_TABLE, None)


def test_rows_of_a_twin_that_left_a_domain_are_quarantined(stream: Stream, tmp_path: Path) -> None:
    before, after = in_sales(tmp_path, ORDERS, LINES), in_sales(tmp_path, ORDERS)
    raw = row_of(before, "lines", "c", id=7, note="line")
    fail("iceberg-failed", "sales", [raw])
    redrive(stream, of=after, changelogs=lambda: columns_of(before))
    [kept] = stream.rows(naming.QUARANTINE)
    assert stream.rows("orders_changes") == [] and base64.b64decode(kept["value"]) == raw
    assert kept["reason"] == refusals.several_tables(["orders_changes", "lines_changes"])


@pytest.mark.parametrize("failed", ["users", naming.REDRIVE])
def test_rows_of_a_removed_table_are_not_another_tables(
    stream: Stream, tmp_path: Path, failed: str
) -> None:
    users, shops = (
        entry(table, "id: bigint, name: text", domain=None) for table in ("users", "shops")
    )
    before, after = plan_of(tmp_path, users, shops), plan_of(tmp_path, shops)
    raw = row_of(before, "users", "c", id=7, name="Ada")
    fail("iceberg-failed", failed, [raw])
    redrive(stream, of=after, changelogs=lambda: columns_of(before))
    [kept] = stream.rows(naming.QUARANTINE)
    assert stream.rows("shops_changes") == [] and base64.b64decode(kept["value"]) == raw
    assert kept["reason"] == refusals.several_tables(["shops_changes", "users_changes"])


def test_a_tables_own_stream_attributes_its_rows(stream: Stream, tmp_path: Path) -> None:
    """The columns do not matter: no other table was ever in such a stream."""
    users, shops = (
        entry(table, "id: bigint, name: text", domain=None) for table in ("users", "shops")
    )
    both = plan_of(tmp_path, users, shops)
    after = plan_of(tmp_path, entry("users", "id: bigint", domain=None))
    fail("iceberg-failed", "users", [row_of(both, "users", "c", id=7, name="Ada")])
    answer = redrive(stream, of=after, changelogs=lambda: columns_of(both))
    assert answer["redriven"] == {"users_changes": 1}


def test_rows_of_a_domain_come_back_to_the_only_table_with_their_columns(
    stream: Stream, tmp_path: Path
) -> None:
    plan = in_sales(tmp_path, ORDERS, ITEMS)
    raw = row_of(plan, "orders", "c", id=7, note="order")
    fail("iceberg-failed", "sales", [raw])
    fail("iceberg-failed", naming.REDRIVE, [raw])
    answer = redrive(stream, of=plan, changelogs=lambda: columns_of(plan))
    assert (answer["redriven"], answer["quarantined"]) == ({"orders_changes": 2}, {})


def test_the_erasure_of_another_tables_key_drops_no_row(stream: Stream, tmp_path: Path) -> None:
    before, after = in_sales(tmp_path, ORDERS, LINES), in_sales(tmp_path, ORDERS)
    fail("iceberg-failed", "sales", [row_of(before, "lines", "c", id=7, note="line")])
    gone = in_memory(after.table("orders"), {(7,): "~"})
    how: dict[str, Any] = {"changelogs": lambda: columns_of(before), "erased": lambda: gone}
    answer = redrive(stream, of=after, **how)
    assert (answer["dropped"], len(stream.rows(naming.QUARANTINE))) == (0, 1)


def test_the_catalog_lists_changelogs_with_their_current_columns() -> None:
    glue = boto3.client("glue")
    assert read_changelogs(glue, "cdc_iceberg") == {}
    glue.create_database(DatabaseInput={"Name": "cdc_iceberg"})
    dropped = {"Name": "old", "Parameters": {"iceberg.field.current": "false"}}
    columns = [{"Name": "id", "Parameters": {"iceberg.field.current": "true"}}, dropped]
    for name in ("orders_changes", "orders"):
        glue.create_table(
            DatabaseName="cdc_iceberg",
            TableInput={"Name": name, "StorageDescriptor": {"Columns": columns}},
        )
    assert read_changelogs(glue, "cdc_iceberg") == {"orders_changes": {"id"}}
