"""Waits of `up` for its marker and for the rows of snapshots."""

from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.errors import ComponentFailed
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.local import streaming_start
from cdclake.local.lake import stack
from cdclake.local.process.home import Home


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(streaming_start, "READY_TIMEOUT_S", 0.05)
    monkeypatch.setattr(streaming_start, "_POLL_S", 0.01)
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
    streaming_start._await(lake, CONNECTOR, lambda: next(looks) > 30, "nothing came")
    assert next(offsets) > 2


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress(tables={"orders": TableProgress(offsets={0: 7})})
    monkeypatch.setattr(Progress, "load", staticmethod(lambda control: progress))


@pytest.mark.usefixtures("still")
def test_it_gives_up_when_nothing_moves(lake: Any) -> None:
    with pytest.raises(ComponentFailed, match=r"^nothing came: no event arrived for 0 s"):
        streaming_start._await(lake, CONNECTOR, lambda: False, "nothing came")


@pytest.mark.usefixtures("still")
def test_await_rows_names_the_rows_that_are_missing(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = SimpleNamespace(refused=None)
    monkeypatch.setattr(streaming_start, "unfinished", lambda lake: {"orders": load})
    monkeypatch.setattr(streaming_start, "advance_of", lambda loads: None)
    monkeypatch.setattr(streaming_start, "ConnectorClient", lambda *_: CONNECTOR)
    with pytest.raises(
        ComponentFailed, match=r"^the rows of a snapshot did not reach the lake: no"
    ):
        streaming_start.await_rows(lake)
