"""How long `up` waits for its marker, which stands behind a first snapshot."""

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
    return SimpleNamespace(home=Home(tmp_path), control=None, kafka="", plan=plan)


CONNECTOR: Any = SimpleNamespace(failure=lambda: None)


def test_it_waits_while_the_stream_takes_records(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets, looks = count(), count()

    def moving(control: Any) -> Progress:
        return Progress(tables={"orders": TableProgress(offsets={0: next(offsets)})})

    monkeypatch.setattr(Progress, "load", staticmethod(moving))
    streaming_start._await(lake, CONNECTOR, lambda: next(looks) > 30)
    assert next(offsets) > 2


def test_it_gives_up_when_nothing_moves(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    still = Progress(tables={"orders": TableProgress(offsets={0: 7})})
    monkeypatch.setattr(Progress, "load", staticmethod(lambda control: still))
    with pytest.raises(ComponentFailed, match="no marker came through the stream"):
        streaming_start._await(lake, CONNECTOR, lambda: False)
