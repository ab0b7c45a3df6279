"""Waits of `up` for its marker and for the rows of snapshots."""

from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.errors import ComponentFailed
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.local import awaited_events
from cdclake.local.lake import stack
from cdclake.local.process.home import Home


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(awaited_events, "READY_TIMEOUT_S", 0.05)
    monkeypatch.setattr(awaited_events, "_POLL_S", 0.01)
    monkeypatch.setattr(stack, "components", lambda home: [])
    plan = SimpleNamespace(deliveries=(), source_object="cdclake_shop")
    endpoints = SimpleNamespace(connect="")
    return SimpleNamespace(
        home=Home(tmp_path), control=None, kafka="", plan=plan, endpoints=endpoints
    )


CONNECTOR: Any = SimpleNamespace(failure=lambda: None)


def test_it_waits_while_the_stream_takes_records(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets, looks = count(), count()

    def moving(control: Any) -> Progress:
        return Progress(tables={"orders": TableProgress(offsets={0: next(offsets)})})

    monkeypatch.setattr(Progress, "load", staticmethod(moving))
    shown: list[int] = []
    awaited_events._await(
        lake, CONNECTOR, lambda: next(looks) > 30, "nothing came", show=lambda: shown.append(1)
    )
    assert next(offsets) > 2 and len(shown) == 31


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress(tables={"orders": TableProgress(offsets={0: 7})})
    monkeypatch.setattr(Progress, "load", staticmethod(lambda control: progress))


@pytest.mark.usefixtures("still")
def test_it_gives_up_when_nothing_moves(lake: Any) -> None:
    with pytest.raises(ComponentFailed, match=r"^nothing came: no event arrived for 0 s"):
        awaited_events._await(lake, CONNECTOR, lambda: False, "nothing came", show=lambda: None)


@pytest.mark.usefixtures("still")
def test_await_rows_names_the_rows_that_are_missing(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = SimpleNamespace(refused=None)
    monkeypatch.setattr(awaited_events, "find_unfinished_loads", lambda lake: {"orders": load})
    monkeypatch.setattr(awaited_events, "advance_of", lambda loads: None)
    monkeypatch.setattr(awaited_events, "ConnectorClient", lambda *_: CONNECTOR)
    with pytest.raises(
        ComponentFailed, match=r"^the rows of a snapshot did not reach the lake: no"
    ):
        awaited_events.await_rows(lake)
