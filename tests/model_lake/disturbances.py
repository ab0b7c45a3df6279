"""What happens to the lake while histories run: a job, or a command, and a kill beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random

from tests.local.running import RunningLake
from tests.model_lake.shapes import ALL_SHAPES

_TRIES = 3
_KILLED = ("stream", "connect", "kafka")


@contextmanager
def _job(lake: RunningLake, name: str) -> Iterator[None]:
    """A job over all tables, running as long as the block and longer."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lake.run, "job", name)
        yield
        running.result()


@contextmanager
def _maintenance(lake: RunningLake, _: Random) -> Iterator[None]:
    with _job(lake, "maintain_tables"):
        yield


@contextmanager
def _rebuild(lake: RunningLake, _: Random) -> Iterator[None]:
    with _job(lake, "rebuild_tables"):
        yield


@contextmanager
def _resync(lake: RunningLake, random: Random) -> Iterator[None]:
    """A table is read again, whatever happens meanwhile."""
    table = random.choice(ALL_SHAPES).name
    lake.run("resync", table, "--no-wait")
    yield
    lake.run("resync", table)


@contextmanager
def _pause(lake: RunningLake, random: Random) -> Iterator[None]:
    """The stream stands still for a while, and has much to read afterwards."""
    lake.run("pause")
    time.sleep(random.uniform(1, 5))
    lake.run("resume")
    yield


_BESIDE: tuple[Callable[[RunningLake, Random], AbstractContextManager[None]], ...] = (
    _maintenance,
    _resync,
    _pause,
    _rebuild,
)


def bring_up(lake: RunningLake, pipeline: Path) -> None:
    """`up`, and again where a busy machine was not done in its time; anything else fails."""
    for _ in range(_TRIES):
        answer = lake.run("up", str(pipeline), expect=None)
        if answer["ok"]:
            return
        assert "no marker came through" in answer["error"]["message"], answer
    raise AssertionError(answer)


def describe(number: int) -> str:
    """What `disturb` does under this number."""
    beside = _BESIDE[number % len(_BESIDE)].__name__.strip("_")
    return f"{beside}, {_KILLED[number % len(_KILLED)]} killed"


def disturb(lake: RunningLake, number: int, pipeline: Path) -> None:
    """Kill a component in the middle of something else, and heal it; twelve numbers do all."""
    random, component = Random(number), _KILLED[number % len(_KILLED)]
    with _BESIDE[number % len(_BESIDE)](lake, random):
        time.sleep(random.uniform(0, 4))
        lake.kill(component)
        lake.eventually(lambda: not lake.is_running(component), seconds=10)
        bring_up(lake, pipeline)
