"""Pauses between retries: exponential, with jitter, so that many clients do not return together."""

from __future__ import annotations

import random


def pause_after(failures: int, first: float, longest: float, *, seed: str | None = None) -> float:
    """Return the pause after so many consecutive failures, in the unit of `first` and `longest`.

    It doubles with each failure up to `longest`; jitter shortens it by up to a quarter. A `seed`
    gives the same jitter each time.

    >>> pause_after(3, 10, 300, seed="a") / pause_after(1, 10, 300, seed="a")
    4.0
    >>> 225 <= pause_after(5_000, 10, 300) <= 300
    True
    """
    doublings = min(failures - 1, 60)
    jitter = random.Random(seed).uniform(0.75, 1.0)
    return min(longest, first * (1 << doublings)) * jitter
