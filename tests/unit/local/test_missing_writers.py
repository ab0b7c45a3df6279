"""Health of a lake whose stream or Firehose no command has started."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.config.resolve import load_plan
from cdclake.local import lifecycle, status
from cdclake.local.lake import lake as lake_module
from cdclake.local.lake.lake import LakeState
from cdclake.local.lake.stack import LocalSource
from cdclake.local.process import ports, supervisor_client
from cdclake.local.process.home import Home, read_json
from cdclake.local.process.process_spec import Desired, Observed, ProcessStatus
from cdclake.plan import Plan
from tests.unit.local.declared_processes import declare
from tests.unit.postgres.tables import plan

PIPELINES = Path(__file__).parents[3] / "pipelines"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The home of a lake whose declared processes are all reported as running."""
    found = Home(tmp_path / "home")
    found.create()
    ports.assign(found, set())

    def observe(_: Home) -> Observed:
        specs = Desired.from_json(read_json(found.desired_file)).specs
        seen = tuple(ProcessStatus(s.name, 1, "running", None, s.log) for s in specs)
        return Observed(1, 1, seen, alive=True)

    monkeypatch.setattr(supervisor_client, "observe", observe)
    monkeypatch.setattr(lake_module, "use_local_aws", lambda _: None)
    return found


def status_of(home: Home, found: Plan, *names: str, paused: bool = False) -> dict[str, Any]:
    LakeState(plan=found.to_json(), epoch=1, paused=paused).save(home)
    declare(home, *names)
    return status.lake_status(home)


def test_a_lake_without_its_stream_is_down(home: Home) -> None:
    found = status_of(home, plan(), "kafka", "connect")
    assert (found["health"], found["down"], found["ok"]) == ("down", ["stream"], False)
    assert found["attention"][0] == "down: stream; run `cdclake up`"
    assert status.with_components(home, found)["down"] == ["stream"]


def test_a_lake_that_was_started_without_its_stream_is_not_down(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = LocalSource("127.0.0.1", 1, "postgres", "p", "shop")
    assert status_of(home, plan(), "kafka", "connect")["health"] == "down"
    monkeypatch.setattr(lifecycle, "_bring_up", lambda *_: SimpleNamespace(source=own))
    monkeypatch.setattr(lifecycle, "_answer", lambda *_: {})
    monkeypatch.setattr(lifecycle, "stop_streaming", lambda *_: None)
    lifecycle.up_bare(home, None, None)
    found = status.lake_status(home)
    assert (found["down"], found["health"]) == ([], "attention")
    assert "`cdclake up --no-stream` has stopped" in found["attention"][0]
    LakeState.set_paused(home, paused=True)
    assert LakeState.load(home).bare
    LakeState.set_paused(home, paused=False)  # `resume` starts the stream
    assert status.lake_status(home)["down"] == ["stream"]


def test_a_lake_without_its_firehose_is_down(home: Home) -> None:
    only_puts = load_plan(PIPELINES / "puts.yaml")
    assert not only_puts.tables
    assert status_of(home, only_puts, "kafka")["down"] == ["firehose"]


def test_a_lake_with_all_its_writers_or_paused_is_not_down(home: Home) -> None:
    assert status_of(home, plan(), "kafka", "stream")["down"] == []
    assert status_of(home, plan(), "kafka", paused=True)["down"] == []


def test_a_writer_is_starting_while_a_command_changes_the_lake(home: Home) -> None:
    with home.changing():
        found = status_of(home, plan(), "kafka")
    assert found["down"] == []
    assert "starting: stream; wait, then run `cdclake status`" in found["attention"]
    assert status_of(home, plan(), "kafka")["down"] == ["stream"]
