"""`up --no-stream` on a lake that has streamed stops what streams; `resume` then needs `up`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.config.resolve import load_plan
from cdclake.errors import NotRunning
from cdclake.local import shutdown
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LakeState
from cdclake.local.operations_backend import LocalBackend
from cdclake.local.process.home import Home
from tests.unit.postgres.tables import plan

PUTS = load_plan(Path(__file__).parents[3] / "pipelines" / "puts.yaml")


def stopped(state: LakeState, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    found: list[str] = []

    def client(_: Any, its: Any, *, name: str = "") -> Any:
        return SimpleNamespace(stop_existing=lambda: found.append(name or f"{its.name}-source"))

    monkeypatch.setattr(shutdown, "ConnectorClient", client)
    monkeypatch.setattr(stack, "stop_component", lambda _, name: found.append(name))
    shutdown.stop_streaming(Home(tmp_path), SimpleNamespace(connect=None), state)  # type: ignore[arg-type]
    return found


def test_connector_and_stream_are_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    streamed = LakeState(plan=plan().to_json(), epoch=1)
    assert stopped(streamed, monkeypatch, tmp_path) == [f"{plan().name}-source", "stream"]
    assert stopped(LakeState(), monkeypatch, tmp_path) == []
    assert stopped(LakeState(plan=PUTS.to_json()), monkeypatch, tmp_path) == []


def test_resume_needs_up_first() -> None:
    lake: Any = SimpleNamespace(plan=plan(), state=LakeState(bare=True))
    with pytest.raises(NotRunning, match="without its connector") as refused:
        LocalBackend(lake).check_resumable()
    assert "cdclake up" in refused.value.remedy
    lake.plan = PUTS
    LocalBackend(lake).check_resumable()
    lake.plan, lake.state = plan(), LakeState(bare=False)
    LocalBackend(lake).check_resumable()
