"""Views that were stored before the pipeline file or the source has changed, in a real Trino."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cdclake.iceberg.athena_views import athena_views
from cdclake.iceberg.schemas import changes_schema, state_schema
from cdclake.iceberg.stored_view import bound_of, lateness_of
from cdclake.local.trino.server import Trino, running_trino
from cdclake.plan import Column, Table
from tests.trino.lake_catalog import need_iceberg_jars
from tests.trino.test_athena_sql import shown
from tests.trino.values import lake_values, trino_type
from tests.unit.iceberg.test_stored_view import stored as stored_text
from tests.unit.verify.cases import APPLIED_10, stored
from tests.unit.verify.lakes import event, make_plan, make_table

CATALOG = """\
connector.name=iceberg
iceberg.catalog.type=TESTING_FILE_METASTORE
hive.metastore.catalog.dir=file://{folder}
"""
NARROW = {"id": "integer", "quantity": "integer", "total": "numeric(6,2)"}
WIDE = {"id": "bigint", "quantity": "bigint", "total": "numeric(9,2)"}
SMALL: dict[str, Any] = {"id": 1, "quantity": 5}
APPLIED: dict[str, Any] = {"id": 2, "quantity": 3_000_000_000}
PENDING: dict[str, Any] = {"id": 3, "quantity": 4_000_000_000}


def table_of(types: dict[str, str]) -> Table:
    columns = (Column(source=name, name=name, type=kind) for name, kind in types.items())
    return make_table(columns=tuple(columns))


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Trino]:
    """A server with a catalog in files, which may create tables and views."""
    need_iceberg_jars()
    server, files = tmp_path / "trino", tmp_path / "lake"
    server.mkdir()
    files.mkdir()
    with running_trino(server, None, CATALOG.format(folder=files), "all") as running:
        running.rows("CREATE SCHEMA lake_db")
        yield running


def fill(lake: Trino, table: Table, log: list[Any], state: list[Any]) -> None:
    """Make changelog and state again with the table's types and these rows."""
    plan = make_plan(table)
    values = lake_values(table, plan, log, state)
    for schema in (changes_schema(table, plan), state_schema(table, plan)):
        columns = ", ".join(f'"{name}" {trino_type(kind)}' for name, kind in schema.columns)
        lake.rows(f"DROP TABLE IF EXISTS lake_db.{schema.name}")
        lake.rows(f"CREATE TABLE lake_db.{schema.name} ({columns})")
        lake.rows(f"INSERT INTO lake_db.{schema.name} {values[schema.name]}")


def skips_by_key(lake: Trino, view: str) -> dict[str, bool]:
    """Check, by table, that files are skipped by a predicate on the view's key."""
    query = f"SELECT quantity FROM lake_db.{view} WHERE id = 1"
    [[explained]] = lake.rows(f"EXPLAIN (TYPE IO, FORMAT JSON) {query}")
    found: dict[str, bool] = {}
    for each in json.loads(explained)["inputTableColumnInfos"]:
        name = each["table"]["schemaTable"]["table"]
        columns = [column["columnName"] for column in each["constraint"]["columnConstraints"]]
        found[name] = found.get(name, True) and "id" in columns
    return {name: skips for name, skips in found.items() if "$" not in name}


@pytest.mark.slow
def test_views_outlive_a_widening_of_their_columns(lake: Trino) -> None:
    narrow, wide = table_of(NARROW), table_of(WIDE)
    log, state = [event("c", 10, 11, total="7.50", **SMALL)], [stored(10, 11, total=7.5, **SMALL)]
    fill(lake, narrow, log, state)
    for statement in athena_views(narrow, make_plan(narrow), since=-1).values():
        lake.rows(statement)
    [[formatted]] = lake.rows("SHOW CREATE VIEW lake_db.t_current")
    text = stored_text(formatted.partition(" AS\n")[2])
    assert (bound_of(text), lateness_of(text)) == (-1, 0)
    assert skips_by_key(lake, "t_current")["t"], "no cast is left while the types are equal"
    assert skips_by_key(lake, "t_history")["t_changes"]
    log += [
        event("c", 20, 21, total="123456.50", **APPLIED),
        event("c", 30, 31, total="234567.50", **PENDING),
    ]
    state += [stored(20, 21, total=123456.5, **APPLIED)]
    fill(lake, wide, log, state)
    for view in ("t_current", "t_history"):
        rows = lake.rows(f"SELECT id, quantity, total FROM lake_db.{view} ORDER BY id")
        assert rows == [(1, 5, Decimal("7.50")), (2, None, None), (3, None, None)]


def test_a_view_of_whole_rows_keeps_values_that_are_no_longer_sent(engine: Trino) -> None:
    """The table had replica identity full, or was polled, when the view was stored."""
    table = make_table(replica_identity="full")
    unsent = event("u", 20, 21, id=1, v=2, big="?")
    rows = shown(engine, table, make_plan(table), [unsent], [APPLIED_10], [])
    assert rows == [(1, 2, "A")]
