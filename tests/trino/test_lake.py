"""A lake made by the local components, read by a real Trino with its Iceberg connector."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import boto3
import pytest
from trino.exceptions import TrinoUserError

from cdclake.config.derived_athena import athena_statements
from cdclake.config.resolve import load_plan
from cdclake.iceberg.as_of_query import AS_OF, as_of_query
from cdclake.iceberg.athena_views import athena_views, tail_bound
from cdclake.iceberg.saved_queries import saved_queries
from cdclake.jobs.iceberg.catalog_view import CatalogViews
from cdclake.local.lake.lake import BUCKET, aws_environment
from cdclake.local.process.orphan_processes import COMPONENT_KEY
from cdclake.local.trino.server import CATALOG, Trino
from cdclake.plan import Plan
from tests.local.running import DERIVED, SHOP, Business, RunningLake, shop_lake_in
from tests.trino.lake_catalog import create_views, need_iceberg_jars, trino_at

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(590)]

SOURCE = {
    "customers": "customer_id, name, email, phone, address, created_at, updated_at",
    "orders": "order_id, customer_id, status::text, total, details::text, note,"
    " ordered_at, updated_at",
    "order_items": "order_id, line_no, sku, quantity, unit_price, discount, gift",
}
SCHEDULED = "order_items"


@dataclass(frozen=True)
class ReadLake:
    """A lake, its plan, and the server that reads it."""

    lake: RunningLake
    plan: Plan
    engine: Trino

    def source(self, table: str) -> list[tuple[Any, ...]]:
        """The rows of the source, with points in time in UTC."""
        columns = [
            f"{c} AT TIME ZONE 'UTC'" if c.endswith("_at") else c for c in SOURCE[table].split(", ")
        ]
        with self.lake.connect() as connection:
            rows = connection.execute(f"SELECT {', '.join(columns)} FROM {table}".encode())
            return sorted(rows.fetchall(), key=repr)

    def shown(self, relation: str) -> list[tuple[Any, ...]]:
        """The rows of a relation in Trino."""
        return sorted(self.engine.rows(f'SELECT * FROM "cdc_iceberg"."{relation}"'), key=repr)

    def live(self, table: str, at: str = "") -> int:
        """The number of live rows of a state."""
        query = f'SELECT count(*) FROM "cdc_iceberg"."{table}"{at} WHERE NOT cdc_deleted'
        [[rows]] = self.engine.rows(query)
        return int(rows)

    def await_applied(self, table: str) -> None:
        """Wait until the stream has applied what the source has."""
        self.lake.eventually(lambda: self.live(table) == len(self.source(table)))

    def assert_current(self) -> None:
        """The views have the source's rows; a large value of a changed key once it is applied."""
        for table in SOURCE:
            view, expected = f"{table}_current", self.source(table)
            if table == SCHEDULED:
                assert self.shown(view) == expected
            else:
                self.lake.eventually(partial(self._shows, view, expected))

    def _shows(self, view: str, expected: list[tuple[Any, ...]]) -> bool:
        return self.shown(view) == expected


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadLake]:
    """A lake that writers have changed since its snapshot, with the views stored in its catalog."""
    need_iceberg_jars()
    folder = tmp_path_factory.mktemp("lake")
    file = folder / "shop.yaml"
    scheduled = SHOP.read_text().replace(
        f"public.{SCHEDULED}:", f"public.{SCHEDULED}:\n    apply: scheduled"
    )
    file.write_text(scheduled.rstrip() + "\n" + DERIVED)
    plan = load_plan(file)
    with shop_lake_in(folder) as lake:
        lake.run("up", str(file))
        with trino_at(lake, folder / "trino") as engine:
            create_views(engine, plan)
            found = ReadLake(lake, plan, engine)
            _change(lake, seed=1)
            yield found


def _change(lake: RunningLake, seed: int) -> None:
    with Business(lake, seed=seed) as writer:
        lake.eventually(lambda: writer.rounds >= 20)
    lake.assert_equal()


def test_current_equals_the_source_however_much_is_applied(read: ReadLake) -> None:
    assert read.live(SCHEDULED) != len(read.source(SCHEDULED))
    read.assert_current()
    read.lake.run("job", "apply_changes")
    assert read.live(SCHEDULED) == len(read.source(SCHEDULED))
    read.assert_current()
    _change(read.lake, seed=2)
    assert read.live(SCHEDULED) != len(read.source(SCHEDULED))
    read.assert_current()


def test_verify_compares_what_trino_shows(read: ReadLake) -> None:
    """With changes that are not applied; nothing is stored, and the server is gone afterwards."""
    read.lake.run("job", "apply_changes")
    _change(read.lake, seed=3)
    views = read.engine.rows('SHOW TABLES FROM "cdc_iceberg"')
    verified = [table["last_verified"] for table in read.lake.run("status")["tables"]]
    report = read.lake.run("verify", "--reader", "trino")
    assert (report["ok"], report["reader"]) == (True, "trino")
    for table in report["tables"]:
        rows = len(read.source(table["table"]))
        assert (table["source_rows"], table["lake_rows"], table["unsettled"]) == (rows, rows, 0)
    assert read.engine.rows('SHOW TABLES FROM "cdc_iceberg"') == views
    assert [table["last_verified"] for table in read.lake.run("status")["tables"]] == verified
    servers = [each.environ()[COMPONENT_KEY] for each in read.lake.processes()].count("trino")
    assert servers == 1, "only that of this test is left"


def test_states_are_read_through_their_position_deletes(read: ReadLake) -> None:
    newest = (
        "SELECT max_by(CAST(element_at(summary, 'total-position-deletes') AS bigint), committed_at)"
        ' FROM "cdc_iceberg"."orders$snapshots"'
    )
    [[deletes]] = read.engine.rows(newest)
    assert deletes > 0
    read.await_applied("orders")


def test_history_has_each_event(read: ReadLake) -> None:
    for table in SOURCE:
        counts = [
            read.engine.rows(f'SELECT cdc_op, count(*) FROM "cdc_iceberg"."{name}" GROUP BY 1')
            for name in (f"{table}_history", f"{table}_changes")
        ]
        assert sorted(counts[0]) == sorted(counts[1]) != []


def test_saved_queries_run_as_written(read: ReadLake) -> None:
    for table in read.plan.all_tables:
        for what, query in saved_queries(table, read.plan.lake_database).items():
            values = [1] * query.count("?")
            if "an hour ago" in what:  # this lake is younger
                with pytest.raises(TrinoUserError, match="No version history table"):
                    read.engine.rows(query, *values)
            else:
                read.engine.rows(query, *values)


def test_states_are_read_as_of_a_time_and_as_of_a_snapshot(read: ReadLake) -> None:
    read.await_applied("orders")
    applied, before = datetime.now(UTC), read.live("orders")
    newest = 'SELECT max_by(snapshot_id, committed_at) FROM "cdc_iceberg"."orders$snapshots"'
    [[snapshot]] = read.engine.rows(newest)
    with read.lake.connect() as source:
        source.execute("DELETE FROM orders WHERE order_id % 2 = 0")
    read.lake.assert_equal()
    read.await_applied("orders")
    assert read.live("orders") < before
    assert read.live("orders", f" FOR VERSION AS OF {snapshot}") == before
    moment = applied.strftime("TIMESTAMP '%Y-%m-%d %H:%M:%S.%f UTC'")
    assert read.live("orders", f" FOR TIMESTAMP AS OF {moment}") == before
    as_of = as_of_query(read.plan.table("orders", of="file"), read.plan)[AS_OF]
    assert len(read.engine.rows(as_of, f"{applied:%Y-%m-%d %H:%M:%S.%f} UTC")) == before
    with pytest.raises(TrinoUserError, match="ask for a commit time since"):
        read.engine.rows(as_of, "2026-01-01 00:00:00 UTC")


def test_a_file_is_read_that_has_no_value_of_a_decimal(read: ReadLake) -> None:
    """A batch of deletes, which bring the key alone."""
    with read.lake.connect() as source:
        source.execute("DELETE FROM orders WHERE order_id % 3 = 0")
    read.lake.assert_equal()
    deletes = 'SELECT count(*), count(total) FROM "cdc_iceberg"."{}" WHERE cdc_op = \'d\''
    for relation in ("orders_changes", "orders_history"):
        [[rows, totals]] = read.engine.rows(deletes.format(relation))
        assert rows > totals == 0


def test_a_table_is_created_from_the_views(read: ReadLake) -> None:
    """By the text printed for Athena, without the properties that only Athena has."""
    [derived] = [each for each in read.plan.derived if each.name == "order_lines"]
    text = athena_statements(derived, read.plan.lake_database).create_table_as
    text = text.replace("table_type = 'ICEBERG', is_external = false, ", "")
    read.engine.rows(text.replace("BUCKET", BUCKET))
    lines = (
        "SELECT i.order_id, i.line_no FROM order_items i JOIN orders o USING (order_id) ORDER BY 1"
    )
    with read.lake.connect() as source:
        expected = sorted(source.execute(lines.encode()).fetchall())
    made = read.engine.rows(
        f'SELECT order_id, line_no FROM {CATALOG}."cdc_iceberg".order_lines_ctas'
    )
    assert sorted(made) == expected


def test_the_literal_of_a_stored_view_is_replaced_in_the_catalog(
    read: ReadLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in aws_environment(read.lake.endpoints).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    orders, views = read.plan.table("orders", of="file"), CatalogViews()

    def renew(bound: int) -> int | None:
        return views.replace_bound("cdc_iceberg", "orders_current", lambda *_: bound)

    assert renew(5) is None, "the dynamic text has no literal"
    [[since]] = read.engine.rows(tail_bound(orders, read.plan))
    read.engine.rows(athena_views(orders, read.plan, since)["orders_current"])
    read.assert_current()
    now = time.time_ns() // 1000
    assert renew(now) == now
    with pytest.raises(TrinoUserError, match="then run `cdclake views`"):
        read.shown("orders_current")
    assert renew(since) == since
    read.assert_current()
