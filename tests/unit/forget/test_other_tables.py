"""Places with sought values that are known to be of other tables, which an erasure leaves alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from cdclake import naming
from cdclake.derived_table import DerivedTable
from cdclake.hudi_copy import HudiCopy
from cdclake.jobs.erasure.sought_values import SoughtValue, SoughtValues
from cdclake.jobs.erasure.stored_objects import Leftover
from cdclake.jobs.forget.erase import leftovers
from cdclake.jobs.forget.lake_objects import LakeObjects
from cdclake.jobs.forget.other_records import undeclared_tables
from tests.unit.forget.bucket import BUCKET
from tests.unit.verify.lakes import make_plan, make_table

MAIL = "ada@example.org"
TABLE = make_table(name="customers")
ORDERS = make_table(name="orders", table="orders", topic="shop.public.orders")


def derived(name: str, *sources: str) -> DerivedTable:
    return DerivedTable(
        name=name, sql="", key=("id",), schedule="x", sources=sources, format="json"
    )


PLAN = replace(
    make_plan(TABLE),
    tables=(TABLE, ORDERS),
    derived=(derived("by_contact", "orders"), derived("both", "orders", "customers")),
    copies=(
        HudiCopy(name="orders_hudi", table="orders", type="mor", schedule="x"),
        HudiCopy(name="customers_hudi", table="customers", type="mor", schedule="x"),
    ),
)
HOME = f"s3://{BUCKET}/wh/{PLAN.lake_database}.db"
CURRENT = f"{HOME}/{naming.QUARANTINE}/metadata/1.json"
Record = tuple[str | None, str, bytes]


class Quarantine:
    """Reader of records; each has a table, a topic and a value."""

    def __init__(self, *records: Record) -> None:
        self.records, self.catalog = records, self

    def names(self) -> set[str]:
        return {naming.QUARANTINE}

    @contextmanager
    def open(self, tables: Any, plain: Any) -> Iterator[duckdb.DuckDBPyConnection]:
        with duckdb.connect() as session:
            session.execute(
                f'CREATE TABLE {naming.QUARANTINE} ("table" TEXT, topic TEXT, value BLOB,'
                " key BLOB, headers TEXT, reason TEXT)"
            )
            for record in self.records:
                session.execute(
                    f"INSERT INTO {naming.QUARANTINE} VALUES (?, ?, ?, NULL, NULL, NULL)", record
                )
            yield session


def found(s3: Any, places: list[str], *records: Record) -> tuple[set[str], set[str]]:
    """Return which of the places are left over, and which are those of other tables."""
    metadata = {"metadata_location": CURRENT}
    entries = [{"Name": naming.QUARANTINE, "Parameters": metadata}]
    pages = SimpleNamespace(paginate=lambda **_: [{"TableList": entries}])
    glue = SimpleNamespace(get_paginator=lambda _: pages)
    key = CURRENT.removeprefix(f"s3://{BUCKET}/")
    s3.put_object(Bucket=BUCKET, Key=key, Body=b'{"snapshots": []}')
    lake: Any = SimpleNamespace(
        plan=PLAN,
        objects=LakeObjects(s3, glue, PLAN, f"s3://{BUCKET}/wh"),
        reader=Quarantine(*records),
        search=lambda *_: {Leftover(where, "JSON", ("mail",)) for where in places},
    )
    left, elsewhere = leftovers(lake, TABLE, SoughtValues([SoughtValue("mail", MAIL)]))
    return {place["where"] for place in left}, {place["where"] for place in elsewhere}


def test_tables_that_have_no_row_of_the_erased_one_are_elsewhere(s3: Any) -> None:
    others = {f"{HOME}/{name}/1" for name in (*ORDERS.stored, "by_contact", "orders_hudi")}
    mine = {
        f"{HOME}/{name}/1" for name in (*TABLE.stored, "both", "customers_hudi", "customers_old")
    }
    assert found(s3, [*others, *mine, "log.txt"]) == ({*mine, "log.txt"}, others)


EVENT = {"op": "c", "source": {"schema": TABLE.schema, "table": TABLE.table}}


@pytest.mark.parametrize(
    ("named", "topic", "value", "is_others"),
    [
        ("orders", ORDERS.topic, {"contact": MAIL}, True),
        ("customers", TABLE.topic, {"contact": MAIL}, False),
        ("former", TABLE.topic, {"contact": MAIL}, False),
        ("former", "former", {"contact": MAIL}, False),
        (None, "failed/a", {"contact": MAIL}, False),
        ("orders", "failed/a", {**EVENT, "after": {"contact": MAIL}}, False),
        ("customers", TABLE.topic, {"contact": "bob@example.org"}, True),
    ],
)
def test_records_of_other_tables_are_elsewhere(
    s3: Any, named: str | None, topic: str, value: Any, is_others: bool
) -> None:
    record = (named, topic, json.dumps(value).encode())
    left, elsewhere = found(s3, [CURRENT], ("orders", ORDERS.topic, MAIL.encode()), record)
    assert (left, elsewhere) == ((set(), {CURRENT}) if is_others else ({CURRENT}, set()))


def test_an_older_file_of_the_quarantine_is_left_over(s3: Any) -> None:
    old = f"{HOME}/{naming.QUARANTINE}/data/old.parquet"
    record = ("orders", ORDERS.topic, MAIL.encode())
    assert found(s3, [old, CURRENT], record) == ({old}, {CURRENT})


def test_tables_of_records_that_the_plan_lacks_are_named() -> None:
    names: tuple[str | None, ...] = ("orders", "former", None)
    reader: Any = Quarantine(*((name, "t", b"1") for name in names))
    assert undeclared_tables(reader, {"orders", "customers"}, [TABLE, ORDERS]) == ["", "former"]
    reader.names = set
    assert undeclared_tables(reader, {"orders"}, [ORDERS]) == []


def test_records_under_a_former_name_of_a_declared_table_are_not_named() -> None:
    event = {"op": "u", "source": {"schema": TABLE.schema, "table": TABLE.table}, "after": {}}
    by_source = (None, "s3://b/failed/1", json.dumps(event).encode())
    reader: Any = Quarantine(("former", TABLE.topic, b"1"), by_source)
    assert undeclared_tables(reader, {"orders"}, [TABLE, ORDERS]) == []
    assert undeclared_tables(reader, {"orders"}, [ORDERS]) == ["", "former"]
