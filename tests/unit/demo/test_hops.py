"""What a look says about freshness."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.jobs.control.progress import Progress
from cdclake.local.demo import pipeline_stages
from cdclake.local.demo.transaction_log import Ledger
from cdclake.local.demo.writer import Written

COMMITTED = 1_000.0


class Watched:
    """A lake of one table, of which each of a batch's rows was committed at `COMMITTED`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.offset, self.done = 0.0, 0, COMMITTED
        ledger = Ledger()
        for offset in range(1, 10):
            ledger.add(offset, COMMITTED)
        table = SimpleNamespace(name="orders", table="orders", topic="shop.public.orders")
        plan = SimpleNamespace(tables=[table], deliveries=())
        lake: Any = SimpleNamespace(plan=plan, control=None, kafka=None)
        writer: Any = SimpleNamespace(written=Written(), ledgers={"orders": ledger})
        monkeypatch.setattr("time.monotonic", lambda: self.clock)
        monkeypatch.setattr(pipeline_stages, "end_offsets", lambda *_: {})
        monkeypatch.setattr(
            pipeline_stages, "arrived_offsets", lambda *_: {"orders": {0: self.offset}}
        )
        monkeypatch.setattr(Progress, "load", lambda _: self._progress())
        self._hops = pipeline_stages.Hops(lake, writer)

    def _progress(self) -> Progress:
        return Progress(written_at=datetime.fromtimestamp(self.done, UTC).isoformat())

    def look(self, *, after: float, offset: int, age: float) -> pipeline_stages.Look:
        """So many seconds after the look before; the newest batch ended `age` after the commit."""
        self.clock += after
        self.offset, self.done = offset, COMMITTED + age
        return self._hops.look()


def test_rows_are_as_old_as_when_their_batch_ended(monkeypatch):
    watched = Watched(monkeypatch)
    assert watched.look(after=1, offset=0, age=1).freshness_s is None
    assert watched.look(after=1, offset=2, age=3).freshness_s == pytest.approx(3)
    assert watched.look(after=1, offset=2, age=4).freshness_s == pytest.approx(3)


def test_rows_that_came_while_nobody_looked_are_of_no_known_age(monkeypatch):
    watched = Watched(monkeypatch)
    watched.look(after=1, offset=2, age=3)
    assert watched.look(after=30, offset=5, age=33).slowest_s == pytest.approx(3)
    assert watched.look(after=1, offset=9, age=6).slowest_s == pytest.approx(6)
