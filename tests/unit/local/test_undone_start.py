"""A failed `up`: no slot is left in the source, or the command says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cdclake.errors import ComponentFailed, InputError
from cdclake.local.lake import process_watch, stack
from cdclake.local.lake.lake import LakeState
from cdclake.local.process.home import Home
from cdclake.plan import Plan
from tests.unit.postgres.tables import plan

LEFT = "the slot cdclake_shop retains WAL"
STREAMING = LakeState(plan=plan().to_json(), external=True, epoch=1)


class Source:
    """Stand-in for the source: it notes whose slots were dropped, or does not answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.dropped: list[str] = []
        self.refusal: InputError | None = None
        monkeypatch.setattr(process_watch, "check_owner_in", self.check)
        monkeypatch.setattr(process_watch, "drop_unread_slot", self.drop)

    def check(self, dsn: str, plan: Plan, owner: object) -> None:
        del dsn, plan, owner
        if self.refusal is not None:
            raise self.refusal

    def drop(self, dsn: str, plan: Plan) -> None:
        self.dropped.append(f"{plan.source_object} in {dsn}")


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    return Source(monkeypatch)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.create()
    found.remember("source_dsn", "host=127.0.0.1 dbname=shop")
    return found


def fail(home: Home, state: LakeState) -> ComponentFailed:
    """Run a command that fails after it has saved the state."""
    with pytest.raises(ComponentFailed) as failed, process_watch.undo_on_error(home):
        state.save(home)
        raise ComponentFailed("no marker came through", "read its log", "stream")
    return failed.value


def test_the_slot_of_an_epoch_that_the_command_began_is_dropped(home: Home, source: Source) -> None:
    assert fail(home, STREAMING).remedy == "read its log"
    assert [each.split()[0] for each in source.dropped] == ["cdclake_shop"]


def test_the_slot_of_an_earlier_command_stays_and_is_named(home: Home, source: Source) -> None:
    STREAMING.save(home)
    remedy = fail(home, STREAMING).remedy
    assert remedy == f"read its log; {LEFT}; run `cdclake up` or `cdclake down`"
    assert source.dropped == []


def test_a_slot_that_cannot_be_dropped_is_named_with_the_reason(home: Home, source: Source) -> None:
    source.refusal = InputError("the source does not answer", "check its address")
    remedy = fail(home, STREAMING).remedy
    assert LEFT in remedy and "the source does not answer" in remedy
    assert source.dropped == []


def test_an_interrupted_command_writes_it(
    home: Home, source: Source, capsys: pytest.CaptureFixture[str]
) -> None:
    STREAMING.save(home)
    with pytest.raises(KeyboardInterrupt), process_watch.undo_on_error(home):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == f"{LEFT}; run `cdclake up` or `cdclake down`\n"
    assert source.dropped == []


@pytest.mark.parametrize(
    "state", [LakeState(), replace(STREAMING, external=False), replace(STREAMING, left_source=True)]
)
def test_a_lake_without_a_slot_in_a_users_database_says_nothing(
    home: Home, source: Source, state: LakeState
) -> None:
    assert fail(home, state).remedy == "read its log"
    assert source.dropped == []


def test_a_slot_that_the_connector_still_reads_is_left_alone(
    home: Home, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack, "wants", lambda _home, name: name == "connect")
    assert fail(home, STREAMING).remedy == "read its log"
    assert source.dropped == []
