"""A disk without space: the supervisor and its processes go on, and `down` completes."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdclake.errors import InputError
from cdclake.local import shutdown
from cdclake.local.lake import lake as lake_module
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LakeState
from cdclake.local.process import (
    child_process,
    ports,
    supervisor,
    supervisor_client,
    supervisor_files,
)
from cdclake.local.process import (
    home as home_module,
)
from cdclake.local.process.home import Home, write_atomically
from cdclake.local.process.process_spec import Desired, ScheduledJob, Spec
from tests.unit.postgres.tables import plan

MODULES = (home_module, supervisor_files, supervisor_client, lake_module)
NOTE = "cannot write"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    found = Home(tmp_path / "home")
    found.create()
    ports.assign(found, set())
    monkeypatch.setattr(lake_module, "use_local_aws", lambda _: None)
    yield found
    monkeypatch.undo()
    supervisor_client.stop(found)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The disk; while it has an entry, no file can be written."""
    full: list[str] = []

    def write(path: Path, text: str, **how: Any) -> None:
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write_atomically(path, text, **how)

    for module in MODULES:
        monkeypatch.setattr(module, "write_atomically", write)
    return full


def spec(home: Home, name: str, *argv: str) -> Spec:
    return Spec(
        name, argv or ("sleep", "600"), {"PATH": os.environ["PATH"]}, log=str(home.log(name))
    )


def test_processes_outlive_a_state_that_cannot_be_written(
    home: Home, disk: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    keeping = supervisor.Supervisor(home, lock=-1)
    keeping.reconcile(Desired().with_specs((spec(home, "a"),)))
    keeping.publish(force=True)
    before = home.observed_file.read_text()
    disk.append("full")
    keeping.reconcile(Desired(1).with_specs((spec(home, "b"),)))
    for _ in range(3):
        keeping.publish(force=True)
    assert keeping.children["b"].alive and home.observed_file.read_text() == before
    assert capsys.readouterr().out.count(NOTE) == 2  # once of each file
    disk.clear()
    keeping.publish(force=True)
    assert json.loads(home.observed_file.read_text())["generation"] == 2
    keeping.stop(["b"])


def test_a_job_that_ran_on_a_full_disk_is_remembered_later(home: Home, disk: list[str]) -> None:
    keeping = supervisor.Supervisor(home, lock=-1)
    job = ScheduledJob("rate(1 hour)", spec(home, "due", "true"))
    disk.append("full")
    keeping.reconcile(Desired(scheduled=(job,)))
    assert not (home.run / "schedules.json").exists()
    disk.clear()
    keeping.run_due_job()
    assert json.loads((home.run / "schedules.json").read_text()).keys() == {"due"}


def test_a_log_line_that_cannot_be_written_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    class Full:
        def write(self, text: str) -> None:
            tried.append(text)
            raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("sys.stdout", Full())
    supervisor_files.say("started a")
    assert [line.split(" ", 1)[1] for line in tried] == ["started a\n"]


def test_a_process_whose_log_cannot_be_opened_fails_alone(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(child_process, "rotate", full)
    child = child_process.start(spec(home, "a"), home.path, "token")
    assert child.seen().state == "failed" and "full" in child.reason


@pytest.fixture
def left(home: Home, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Objects that `down` drops in the source of a running lake."""
    found: list[str] = []

    def remove_from_source(*_: Any) -> list[str]:
        found.append("slot")
        return ["slot"]

    monkeypatch.setattr(shutdown, "check_owner_in", lambda *_, **__: None)
    monkeypatch.setattr(shutdown, "remove_from_source", remove_from_source)
    home.remember("source_dsn", "postgresql://u:secret@127.0.0.1:1/shop")
    LakeState(plan=plan().to_json(), epoch=1, external=True).save(home)
    supervisor_client.want(home, [spec(home, "connect"), spec(home, "stream")])
    return found


def test_down_stops_and_drops_without_writing(home: Home, disk: list[str], left: list[str]) -> None:
    disk.append("full")
    answer = shutdown.down(home, purge=False)
    assert answer["stopped"] and answer["dropped"] == left == ["slot"]
    assert not supervisor_client.is_supervisor_alive(home) and not stack.is_up(home)


def test_a_purge_deletes_the_data_before_its_record_cannot_be_written(
    home: Home, disk: list[str], left: list[str]
) -> None:
    home.private_data("kafka")
    disk.append("full")
    with pytest.raises(InputError, match=r"record of the lake.*No space left"):
        shutdown.down(home, purge=True)
    assert left and not home.data("kafka").exists()
    disk.clear()
    shutdown.down(home, purge=True)
    assert LakeState.load(home) == LakeState() and "source_dsn" not in home.secret_names()
