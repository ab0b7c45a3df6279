"""Tables whose stamps a stream renews in one batch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.jobs.control.leases import Leases
from cdclake.jobs.iceberg.lake_tables import StampedSnapshot
from cdclake.jobs.stream import stamp_renewal
from cdclake.jobs.stream.stamp_renewal import StampRenewal
from cdclake.jobs.stream.table_schedule import TableSchedule
from tests.spark.events import MemoryStore


class Handle:
    """Table with a stamp of this age, which another tool's commit has followed."""

    def __init__(self, age: timedelta) -> None:
        at = int((datetime.now(UTC) - age).timestamp() * 1000)
        self._stamped = StampedSnapshot(2, "stamp", at, at, is_current=False)

    def stamped(self) -> StampedSnapshot:
        return self._stamped


def stream(name: str, age: timedelta) -> Any:
    """Return the stream of a table that other tools maintain, as a run begins with it."""
    return SimpleNamespace(
        table=SimpleNamespace(name=name, changes=f"{name}_changes", maintenance="none"),
        handle=Handle(age),
        update=Handle(age),
        schedule=TableSchedule(),
        lake=None,
    )


@pytest.mark.parametrize(
    ("is_scheduled", "renewed"),
    [(True, ["orders_changes", "orders", "items_changes", "items"]), (False, [])],
)
def test_a_batch_renews_stamps_by_mode(
    monkeypatch: pytest.MonkeyPatch, is_scheduled: bool, renewed: list[str]
) -> None:
    """The stamps of the first table are young; a scheduled run may end after its first batch."""
    found: list[str] = []
    for function in ("renew_stamp", "renew_changelog_stamp"):
        monkeypatch.setattr(stamp_renewal, function, lambda _, name, now: found.append(name))
    ages = {"customers": timedelta(hours=1), "orders": timedelta(2), "items": timedelta(2)}
    control: Any = MemoryStore()
    renewal = StampRenewal(Leases(control, "stream_changes"))
    streams = [stream(name, age) for name, age in ages.items()]
    renewal.renew_due(streams, is_scheduled=is_scheduled)
    assert found == renewed
    found.clear()
    renewal.renew_due(streams, is_scheduled=is_scheduled)
    assert found == ([] if is_scheduled else ["orders_changes", "orders"])
