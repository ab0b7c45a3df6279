"""The process of a Trino: it ends with its block, however that ends; another program plays it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from trino.exceptions import TrinoQueryError

from cdclake.errors import ComponentFailed
from cdclake.local.process.home import Home
from cdclake.local.process.orphan_processes import component_in
from cdclake.local.trino import server
from cdclake.local.trino.server import running_trino

WAITING = [sys.executable, "-c", "import time; time.sleep(60)"]
STARTER = """
import sys, time
from pathlib import Path
from cdclake.local.trino import server
server._command = lambda *_: {command}
server._await_answer = lambda engine, *_: engine
with server.running_trino(Path(sys.argv[1])):
    print("started", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def plays(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have another program in the server's place, which answers at once."""

    def played(command: list[str], *, answers: bool = True) -> None:
        monkeypatch.setattr(server, "_command", lambda *_: command)
        if answers:
            monkeypatch.setattr(server, "_await_answer", lambda engine, *_: engine)

    return played


def children() -> list[psutil.Process]:
    return psutil.Process().children()


@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), ValueError("a failure")])
def test_the_server_ends_with_its_block(
    plays: Any, tmp_path: Path, error: BaseException | None
) -> None:
    plays(WAITING)
    before = children()
    try:
        with running_trino(tmp_path):
            [process] = set(children()) - set(before)
            if error is not None:
                raise error
    except BaseException as raised:
        assert raised is error
    assert not process.is_running()


def test_the_server_ends_with_a_command_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTER.format(command=WAITING), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None and starter.stdout.readline() == b"started\n"
        [process] = psutil.Process(starter.pid).children()
        starter.kill()
    assert psutil.wait_procs([process], timeout=10)[1] == []


def test_a_server_that_does_not_start_shows_its_log(plays: Any, tmp_path: Path) -> None:
    plays([sys.executable, "-c", "raise SystemExit('no jdk.compiler')"], answers=False)
    with (
        pytest.raises(ComponentFailed, match="Trino ended with exit code 1") as caught,
        running_trino(tmp_path),
    ):
        pytest.fail("it has not started")
    assert caught.value.log_tail == "no jdk.compiler"
    assert str(tmp_path / "trino.log") in caught.value.remedy


def test_a_server_that_ends_within_the_block_is_named(plays: Any, tmp_path: Path) -> None:
    plays(WAITING)
    before = children()
    with pytest.raises(ComponentFailed, match="exit code -9"), running_trino(tmp_path) as engine:
        [process] = set(children()) - set(before)
        process.kill()
        engine.rows("SELECT 1")


def test_the_server_of_a_lake_belongs_to_it(plays: Any, tmp_path: Path) -> None:
    plays(WAITING)
    home = Home(tmp_path / "home")
    home.create()
    folder = tmp_path / "trino"
    folder.mkdir()
    before = children()
    with running_trino(folder, home):
        [process] = set(children()) - set(before)
        assert component_in(process.environ(), home.path) == "trino"
        assert home.log("trino").is_file()


def test_only_the_secret_user_may_ask(plays: Any, tmp_path: Path) -> None:
    plays(WAITING)
    with running_trino(tmp_path) as engine:
        rules = json.loads((tmp_path / "access.json").read_text())
        config = dict(
            line.split("=", 1) for line in (tmp_path / "config.properties").read_text().splitlines()
        )
    assert rules["catalogs"] == [{"user": engine.user, "allow": "read-only"}]
    assert [rule["user"] for rule in rules["queries"]] == [engine.user]
    assert len(engine.user) >= 32
    assert len(config["internal-communication.shared-secret"]) >= 32
    assert config["node.bind-ip"] == "127.0.0.1"
    assert config["http-server.http.port"] == str(engine.port)


@pytest.mark.parametrize("patience", [30.0, -1.0])
def test_a_query_is_repeated_until_the_node_has_the_catalog(
    monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """Trino knows it some seconds after it has answered its first query."""
    missing = {"errorName": "NO_NODES_AVAILABLE", "message": "No nodes available to run query"}
    answers = [TrinoQueryError(missing, "1"), [(7,)]]

    class Cursor:
        def execute(self, *_: Any) -> None:
            self.answer = answers.pop(0)
            if isinstance(self.answer, TrinoQueryError):
                raise self.answer

        def fetchall(self) -> Any:
            return self.answer

    engine = server.Trino(port=1, user="u")
    monkeypatch.setattr(engine, "_connection", SimpleNamespace(cursor=Cursor))
    monkeypatch.setattr(server, "_NODE_S", patience)
    monkeypatch.setattr("cdclake.local.trino.server.time.sleep", lambda _: None)
    if patience > 0:
        assert engine.rows("SELECT 7") == [(7,)]
    else:
        with pytest.raises(TrinoQueryError, match="No nodes available"):
            engine.rows("SELECT 7")
