"""Commands that wait for the lake's lock: they act on the state that the other command leaves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdclake.cli.pause import pause
from cdclake.cli.resume import resume
from cdclake.errors import NotRunning
from cdclake.local import operations_backend, shutdown
from cdclake.local.firehose import component
from cdclake.local.lake import lake as lake_module
from cdclake.local.lake import stack, widened_columns
from cdclake.local.lake.lake import LakeState, LocalLake, describe_lake
from cdclake.local.operations_backend import LocalBackend
from cdclake.local.process import ports
from cdclake.local.process.home import Home
from cdclake.plan import Plan
from cdclake.postgres.ownership import Owner
from tests.unit.local.declared_processes import declare
from tests.unit.postgres.tables import actual, column, declared, plan

OLD = LakeState(plan=plan().to_json(), epoch=1, paused=True)
NEW = LakeState(plan=plan(declared(name="other")).to_json(), epoch=2, loads={"other": {}})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """The home of a lake whose processes are only declared: none of them runs."""
    found = Home(tmp_path / "home")
    found.create()
    ports.assign(found, set())
    declare(found, "kafka")
    OLD.save(found)
    monkeypatch.setenv("CDCLAKE_HOME", str(found.path))
    monkeypatch.setattr(lake_module, "use_local_aws", lambda _: None)
    return found


@contextmanager
def waiting(home: Home, command: Callable[[], Any]) -> Iterator[None]:
    """Start a command while the lock is held; it goes on after the block."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            command()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    with home.changing():
        thread.start()
        time.sleep(0.5)  # it has read whatever it reads before it waits
        assert thread.is_alive()
        yield
    thread.join(30)
    assert not failures and not thread.is_alive()


def test_pause_keeps_what_up_has_saved_meanwhile(home: Home) -> None:
    with waiting(home, lambda: pause(json_output=True)):
        NEW.save(home)
    found = LakeState.load(home)
    assert found.paused and (found.epoch, found.plan) == (2, NEW.plan)


def test_pause_or_down_without_a_lake_creates_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "none"))
    with pytest.raises(NotRunning):
        pause(json_output=True)
    shutdown.down(Home.from_environment(), purge=True)
    assert not (tmp_path / "none").exists()


def test_resume_starts_what_up_has_saved_meanwhile(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Operations:
        def __init__(self, lake: LocalLake) -> None:
            self.lake = lake

        def resume(self, tables: Any) -> dict[str, dict[str, Any]]:
            LocalBackend(self.lake).start_stream()
            return {table.name: {"did": "resumed"} for table in tables}

    started: list[int] = []
    monkeypatch.setattr(operations_backend, "local_operations", Operations)
    monkeypatch.setattr(component, "run", lambda _: None)
    monkeypatch.setattr(
        operations_backend, "run_stream", lambda lake, _: started.append(lake.state.epoch)
    )
    with waiting(home, lambda: resume(json_output=True)):
        NEW.save(home)
    found = LakeState.load(home)
    assert not found.paused and (found.epoch, found.plan, started) == (2, NEW.plan, [2])


def test_a_pause_changes_nothing_else_of_the_state(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(component, "run", lambda _: None)
    monkeypatch.setattr(operations_backend, "run_stream", lambda *_: None)
    lake = describe_lake(home, LakeState.load(home))
    NEW.save(home)
    LocalBackend(lake).start_stream()
    assert LakeState.load(home) == NEW


def test_widened_columns_are_written_into_the_plan_that_is_stored(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    wider = actual(columns=(actual().columns[0], column("number", "bigint", nullable=False)))
    monkeypatch.setattr(widened_columns, "source_tables", lambda *_: {wider.id: wider})
    monkeypatch.setattr(widened_columns, "note_new_columns", lambda *_: None)
    monkeypatch.setattr(widened_columns, "note_widened", lambda *_: None)
    lake = describe_lake(home, OLD)
    both = plan(declared(), declared(table="more", name="more"))
    LakeState(plan=both.to_json(), epoch=2).save(home)

    def follow() -> None:
        followed.append(widened_columns.follow_source(lake).plan)

    def stored() -> list[list[str]]:
        tables = Plan.from_json(LakeState.load(home).plan).tables
        return [[c.type for c in table.columns] for table in tables]

    followed: list[Plan] = []
    status = threading.Thread(target=follow)
    with home.changing():  # another command's
        status.start()
        status.join(10)
        assert not status.is_alive(), "it does not wait for the lock"
        assert stored() == [["integer", "integer"]] * 2
    assert [c.type for c in followed[0].tables[0].columns] == ["integer", "bigint"]
    follow()
    assert stored() == [["integer", "bigint"], ["integer", "integer"]]
    assert LakeState.load(home).epoch == 2


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that `down` has left; none of them is connected to."""
    found: list[str] = []

    def remove_from_source(_: str, plan: Plan, __: Owner) -> list[str]:
        found.append(plan.source_object)
        return [f"slot {plan.source_object}"]

    monkeypatch.setattr(shutdown, "check_owner_in", lambda *_, **__: None)
    monkeypatch.setattr(shutdown, "remove_from_source", remove_from_source)
    return found


def stream_from_a_source(home: Home) -> None:
    home.remember("source_dsn", "postgresql://u:secret@127.0.0.1:1/shop")
    replace(NEW, external=True).save(home)


def test_down_drops_the_slot_of_an_up_that_it_waited_for(home: Home, left: list[str]) -> None:
    (home.path / "lake.json").unlink()
    with waiting(home, lambda: shutdown.down(home, purge=False)):
        stream_from_a_source(home)
    assert left == [plan().source_object]


def test_up_waits_until_down_has_purged(
    home: Home, left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_from_a_source(home)
    home.private_data("kafka")
    seen: list[tuple[bool, bool]] = []
    shut_down = stack.shut_down

    def up() -> None:
        with home.changing():
            seen.append((home.data("kafka").exists(), "source_dsn" in home.secret_names()))

    def with_an_up(stopping: Home) -> bool:
        was_up = shut_down(stopping)
        thread.start()
        thread.join(0.5)
        return was_up

    thread = threading.Thread(target=up)
    monkeypatch.setattr(stack, "shut_down", with_an_up)
    shutdown.down(home, purge=True)
    thread.join(30)
    assert left and seen == [(False, False)]
    assert LakeState.load(home) == LakeState()
