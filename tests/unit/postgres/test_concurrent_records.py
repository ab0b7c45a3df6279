"""Records of relations that two commands write at the same time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cdclake.errors import ComponentFailed
from cdclake.jobs.operations.source_relations import (
    keep_records,
    keep_resynced,
    load_records,
    mark_missed,
)
from cdclake.postgres.prepare import PublicationState
from tests.spark.events import MemoryStore
from tests.unit.postgres.tables import declared, plan
from tests.unit.postgres.test_relations import TABLE, source

ORDERS, ITEMS = declared(), declared(table="items", name="items")
ITEMS_NOW = replace(TABLE, table="items")
BOTH = plan(ORDERS, ITEMS)
PUBLISHED = PublicationState(True, False, True, {t.id: None for t in (TABLE, ITEMS_NOW)})
NOW = source(TABLE, ITEMS_NOW, publication=PUBLISHED)


class Contended(MemoryStore):
    """Store where another command writes just before the next conditional write."""

    other: Callable[[], None] | None = None

    def write_if(self, name: str, content: dict[str, Any], etag: str | None) -> str | None:
        if (other := self.other) is not None:
            self.other = None
            other()
        return super().write_if(name, content, etag)


@pytest.fixture
def control() -> Any:
    return Contended()


def test_resync_keeps_the_mark_that_a_deployment_writes_meanwhile(control: Any) -> None:
    keep_records(control, NOW, BOTH, read=(), settled=True)
    control.other = lambda: mark_missed(control, NOW, BOTH, {ORDERS.source})
    keep_resynced(control, NOW, BOTH, ITEMS)
    assert load_records(control, BOTH)[ORDERS.source].omitted


def test_mark_keeps_the_record_of_a_table_that_is_resynced_meanwhile(control: Any) -> None:
    newer = source(TABLE, replace(ITEMS_NOW, oid=2), publication=PUBLISHED)
    keep_records(control, NOW, BOTH, read=(), settled=True)
    control.other = lambda: keep_resynced(control, newer, BOTH, ITEMS)
    mark_missed(control, NOW, BOTH, {ORDERS.source})
    records = load_records(control, BOTH)
    assert (records[ORDERS.source].omitted, records[ITEMS.source].oid) == (True, 2)


def test_only_up_removes_records_of_other_tables(control: Any) -> None:
    """A resync that began under the plan of before does not have the tables that joined."""
    keep_records(control, NOW, BOTH, read=(), settled=True)
    keep_resynced(control, NOW, plan(ORDERS), ORDERS)
    mark_missed(control, NOW, plan(ORDERS), {ORDERS.source})
    assert load_records(control, BOTH).keys() == {ORDERS.source, ITEMS.source}
    keep_records(control, NOW, plan(ORDERS), read=(), settled=True)
    assert load_records(control, BOTH).keys() == {ORDERS.source}


def test_records_that_others_always_change_are_an_error(
    control: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "write_if", lambda *_: None)
    with pytest.raises(ComponentFailed, match="changed by other commands 10 times"):
        keep_records(control, NOW, BOTH, read=(), settled=True)
