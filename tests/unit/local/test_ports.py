"""Which ports a lake gets, and what happens when a stranger takes one."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdclake.errors import ComponentFailed
from cdclake.local.process import ports
from cdclake.local.process.home import Home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(ports, "RELEASE_WAIT_S", 0.5)
    found = Home(tmp_path / "home")
    found.create()
    return found


@contextmanager
def taken(port: int) -> Iterator[None]:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", port))
        stranger.listen()
        yield


def test_ports_are_distinct_and_not_ephemeral(home: Home) -> None:
    chosen = ports.assign(home, living=())
    assert set(chosen) == set(ports.NAMES)
    assert len(set(chosen.values())) == len(ports.NAMES)
    assert all(ports.LOWEST_PORT <= port < 32768 for port in chosen.values())


def test_a_later_start_keeps_them(home: Home) -> None:
    assert ports.assign(home, living=()) == ports.assign(home, living=())


def test_a_cold_start_replaces_only_the_taken_one(home: Home) -> None:
    before = ports.assign(home, living=())
    with taken(before["kafka"]):
        after = ports.assign(home, living=())
    assert after["kafka"] != before["kafka"]
    assert {**after, "kafka": 0} == {**before, "kafka": 0}


def test_a_port_that_a_dying_process_still_holds_is_waited_for(home: Home) -> None:
    before = ports.assign(home, living=())
    with ThreadPoolExecutor(1) as pool:
        with taken(before["kafka"]):
            after = pool.submit(ports.assign, home, ())
            time.sleep(0.2)
        assert after.result() == before


def test_healing_a_part_whose_port_a_stranger_took_says_so(home: Home) -> None:
    before = ports.assign(home, living=())
    with taken(before["connect"]), pytest.raises(ComponentFailed) as caught:
        ports.assign(home, living=("kafka", "postgres"))
    assert caught.value.component == "connect"
    assert str(before["connect"]) in caught.value.message
    assert "cdclake down" in caught.value.remedy


def test_a_living_part_holds_its_own_port(home: Home) -> None:
    before = ports.assign(home, living=())
    with taken(before["kafka"]), taken(before["kafka-controller"]):
        assert ports.assign(home, living=("kafka",)) == before
