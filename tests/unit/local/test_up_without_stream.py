"""`up --no-stream` stops what streams and no other job; `resume` then needs `up`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake import naming
from cdclake.config.resolve import load_plan
from cdclake.errors import NotRunning
from cdclake.jobs.control.leases import Leases
from cdclake.local import lifecycle, shutdown
from cdclake.local.forget.local_erasure_backend import LocalErasureBackend
from cdclake.local.lake import job_schedules, stack
from cdclake.local.lake.lake import LakeState
from cdclake.local.operations_backend import LocalBackend
from cdclake.local.process import supervisor_client
from cdclake.local.process.home import Home
from tests.spark.events import MemoryStore
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


def test_earlier_runs_are_ended_once_after_the_start_of_a_supervisor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their leases are freed and their reports deleted, also if the `up` that started it fails.

    With a supervisor of before, its jobs run on.
    """
    home, freed = Home(tmp_path), list[str]()
    home.create()
    LakeState(plan=PUTS.to_json()).save(home)
    control = MemoryStore()
    lake = SimpleNamespace(control=control)
    report = naming.report_name("maintain_tables-1")
    control.write(report, {"ok": True})
    monkeypatch.setattr(job_schedules, "describe_lake", lambda *_: lake)
    monkeypatch.setattr(job_schedules, "create_bucket_and_database", lambda _: None)
    monkeypatch.setattr(Leases, "abandon_earlier_runs", lambda _: freed.append("."))
    monkeypatch.setattr(supervisor_client, "_start_supervisor", lambda _: None)
    monkeypatch.setattr(supervisor_client, "_await_generation", lambda *_: None)
    monkeypatch.setattr(lifecycle, "write_client_files", lambda *_: None)

    def bring_up(home: Home, *, fails: bool = False, **_: Any) -> Any:
        supervisor_client.want(home, [])
        if fails:
            raise NotRunning("Kafka did not start", "run it again")
        return SimpleNamespace(source=None)

    monkeypatch.setattr(stack, "bring_up", partial(bring_up, fails=True))
    with pytest.raises(NotRunning):
        lifecycle._bring_up(home, None, None)
    assert freed == []
    monkeypatch.setattr(stack, "bring_up", bring_up)
    monkeypatch.setattr(supervisor_client, "is_supervisor_alive", lambda _: True)
    for left in ([], [report]):
        lifecycle._bring_up(home, None, None)
        assert len(freed) == 5
        assert [*control.stored] == left
        control.write(report, {"ok": True})  # of a run that has started since


def test_an_erasure_leaves_a_stopped_stream_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = Home(tmp_path)
    home.create()
    lake: Any = SimpleNamespace(plan=plan(), home=home)
    removed: list[Home] = []
    module = "cdclake.local.forget.local_erasure_backend"
    monkeypatch.setattr(f"{module}.remove_temporary_files", removed.append)
    monkeypatch.setattr(f"{module}.run_stream", lambda *_: pytest.fail("it was stopped"))
    LocalErasureBackend(lake).restart_stream()
    assert removed == [home]
