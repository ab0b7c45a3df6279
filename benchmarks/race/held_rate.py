"""The rate that a contender holds, found by a short ladder of trials."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.streaming import KEPT_UP, Trial
from cdclake.local.demo.freshness import freshness

Ages = Callable[[float, float], list[tuple[float, int]]]
_SLACK_MS, _SLACK = 5000, 0.25  # allowed growth of the median age: half a trigger, or a quarter
_FIRST_PART, _MIDDLE = 0.25, 0.625  # of a trial: before the one nothing counts
_STEP, _BACK = 1.5, 0.8
_TRIES_DOWN = 4


def judged(rate: float, written: float, ages: Ages, begun: float, ended: float) -> Trial:
    """Return the outcome of a rate that was asked for from `begun` to `ended`.

    It was held if the median age of the trial's end is hardly above that of its middle. A contender
    whose batches take long is given a quarter of its age: its ages rise and fall with each batch.
    RuntimeError if nothing arrived.
    """
    whole = ended - begun
    middle = begun + _MIDDLE * whole
    early = freshness(ages(begun + _FIRST_PART * whole, middle)).p50_ms
    late = freshness(ages(middle, ended)).p50_ms
    if early is None or late is None:
        raise RuntimeError("nothing has arrived of what was written")
    held = written >= KEPT_UP * rate and late <= early + max(_SLACK_MS, _SLACK * early)
    growth = (late - early) / 1000 / (whole * (_MIDDLE - _FIRST_PART))
    return Trial(written=written, growth=growth, held=held)


def held_rate(trial: Callable[[float], Trial], first: float, most: float) -> tuple[float, float]:
    """Return the greatest rate that a trial has held, and the greatest that was tried.

    The ladder goes down from the first rate until one is held, then up until one is not held or
    `most` is. RuntimeError if none of its first tries is held.
    """
    rate = greatest = min(first, most)
    for _ in range(_TRIES_DOWN):
        found = trial(rate)
        if found.held:
            return _climbed(trial, rate, greatest, most)
        rate = min(_BACK * rate, found.arrived)
    raise RuntimeError(f"no rate was held; the next try would be {rate:.0f} changes a second")


def _climbed(
    trial: Callable[[float], Trial], held: float, greatest: float, most: float
) -> tuple[float, float]:
    while held < most:
        rate = min(most, _STEP * held)
        greatest = max(greatest, rate)
        if not trial(rate).held:
            break
        held = rate
    return held, greatest
