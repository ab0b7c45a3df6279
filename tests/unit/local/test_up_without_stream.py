"""`up --no-stream` stops what streams and no other job; `resume` then needs `up`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.config.resolve import load_plan
from cdclake.errors import NotRunning
from cdclake.local import lifecycle, shutdown
from cdclake.local.forget.local_surroundings import LocalSurroundings
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


@pytest.mark.parametrize(("is_alive", "freed"), [(True, 0), (False, 1)])
def test_leases_are_freed_only_with_a_new_supervisor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_alive: bool, freed: int
) -> None:
    """With the supervisor of before, its scheduled jobs run on."""
    found: list[Home] = []
    endpoints = SimpleNamespace(source=None)
    monkeypatch.setattr(lifecycle, "supervisor_alive", lambda _: is_alive)
    monkeypatch.setattr(lifecycle, "free_leases", found.append)
    monkeypatch.setattr(lifecycle, "write_client_files", lambda *_: None)
    monkeypatch.setattr(stack, "bring_up", lambda *_, **__: endpoints)
    lifecycle._bring_up(Home(tmp_path), None, None)
    assert len(found) == freed


def test_an_erasure_leaves_a_stopped_stream_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = Home(tmp_path)
    home.create()
    lake: Any = SimpleNamespace(plan=plan(), home=home)
    removed: list[Home] = []
    module = "cdclake.local.forget.local_surroundings"
    monkeypatch.setattr(f"{module}.remove_temporary_files", removed.append)
    monkeypatch.setattr(f"{module}.run_stream", lambda *_: pytest.fail("it was stopped"))
    LocalSurroundings(lake).restart_stream()
    assert removed == [home]
