"""Steps of a command: who hears of them, rates and the time left."""

from __future__ import annotations

import pytest

from cdclake import activity
from cdclake.activity import Advance, Sampler, Step, listening, step


class Heard:
    """Listener that keeps what it is told."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str]] = []

    def begin(self, step: Step) -> None:
        self.steps.append(("begin", step.name))

    def end(self, step: Step) -> None:
        assert step.ended is not None
        self.steps.append(("end", step.name))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("cdclake.activity.time.monotonic", lambda: now[0])
    return now


def test_steps_are_told_to_the_listener_also_when_they_fail() -> None:
    heard = Heard()
    with listening(heard), pytest.raises(ValueError), step("outer"), step("inner"):
        raise ValueError
    with step("alone"):
        assert not activity.is_shown()
    with listening(heard), listening(None), step("hidden"):
        pass
    assert heard.steps == [
        ("begin", "outer"), ("begin", "inner"), ("end", "inner"), ("end", "outer"),
    ]  # fmt: skip


def test_rate_and_time_left_follow_from_the_first_note(clock: list[float]) -> None:
    running = Step("read")
    assert (running.per_second(), running.seconds_left()) == (None, None)
    running.note(Advance(done=1000, total=5000))
    clock[0] += 10
    assert running.per_second() is None  # nothing since
    running.note(Advance(done=3000, total=5000))
    assert (running.per_second(), running.seconds_left()) == (200.0, 10.0)
    running.note(Advance(done=6000, total=5000))
    assert running.seconds_left() == 0.0
    running.note(Advance(done=6000))
    assert running.seconds_left() is None


def test_rate_begins_again_when_the_figure_does(clock: list[float]) -> None:
    running = Step("read")
    running.note(Advance(done=1000))
    clock[0] += 10
    running.note(Advance(done=10))
    clock[0] += 1
    running.note(Advance(done=20))
    assert running.per_second() == 10.0


def test_figures_are_read_seldom_and_only_for_a_listener(clock: list[float]) -> None:
    shown, read = Step("s"), []

    def count() -> Advance | None:
        read.append(clock[0])
        return Advance(done=len(read)) if len(read) < 3 else None

    sampler = Sampler(shown, count, every_s=2.0)
    sampler.sample()
    assert read == []
    with listening(Heard()):
        for _ in range(5):
            sampler.sample()
            clock[0] += 1
    assert read == [100.0, 102.0, 104.0]
    assert shown.advance == Advance(done=2)
