"""The search of everything that a lake stores, on the real files of an earlier version's lake."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdclake.jobs.reader.lake_row import read_lake_row
from cdclake.local.reader.duck import lake_reader
from cdclake.local.trace.stored_row import stored_row
from cdclake.trace.row_key import key_by_text
from cdclake.trace.trace_facts import FlowFacts, SourceFacts, TraceFacts
from tests.local.source_database import free_port
from tests.stored_lake.stored import ARCHIVES, StoredLake, stored_lake

pytestmark = pytest.mark.local


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda archive: archive.name)
def stored(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoredLake]:
    folder = tmp_path_factory.mktemp("stored")
    with stored_lake(request.param, folder, free_port()) as lake:
        yield lake


def facts_of(stored: StoredLake, name: str, *key: str) -> TraceFacts:
    """What the lake's tables recorded of a row; source and Kafka are not needed."""
    table = stored.lake.plan.table(name)
    row = read_lake_row(lake_reader(stored.lake), key_by_text(table, key))
    return TraceFacts(
        table=table, key=key, source=SourceFacts(), flow=FlowFacts(), events=row.events,
        state_row=row.state_row, current_row=row.current_row,
    )  # fmt: skip


def test_a_deleted_row_is_found_where_its_values_are(stored: StoredLake) -> None:
    facts = facts_of(stored, "orders", "3")
    assert facts.current_row is None and facts.events
    report = stored_row(stored.lake, facts)
    parts = {place["part"] for place in report["stored"] if "customer" in place["columns"]}
    assert {"values of column customer", "page of column customer"} <= parts
    own = ("/orders/", "/orders_changes/")
    by_key = [place["where"] for place in report["stored"] if "order_id" in place["columns"]]
    assert len(by_key) > 2
    assert all(where.startswith("s3://") and any(f in where for f in own) for where in by_key)
    assert report["remaining"][0]["where"] == f"Kafka's topic {facts.table.topic}"


def test_a_row_that_never_was_is_stored_nowhere(stored: StoredLake) -> None:
    assert stored_row(stored.lake, facts_of(stored, "orders", "424242"))["stored"] == []


def test_what_is_planted_beside_the_tables_is_found(stored: StoredLake) -> None:
    facts = facts_of(stored, "orders", "3")
    customer = next(event.values["customer"] for event in facts.events if event.values)
    (stored.lake.home.path / "logs" / "left.log").write_text(f"refused {customer} again\n")
    stored.lake.control.write("reports/left.json", {"rows": [{"customer": customer}]})
    wheres = {place["where"] for place in stored_row(stored.lake, facts)["stored"]}
    assert f"{stored.lake.home.path}/logs/left.log" in wheres
    assert f"{stored.lake.control_uri}/reports/left.json" in wheres
