"""Seeded fault injection; Firehose's documentation allows each kind of fault.

No fault loses a record: failures are retried, and records that are held back arrive later.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

from cdclake.errors import InputError

T = TypeVar("T")

KINDS = ("shuffle", "duplicate", "delay", "split", "fail")
_MAX_CONSECUTIVE_FAILURES = 2  # below every number of retries


class FaultInjector:
    """Generator of faults; the same seed gives the same faults."""

    def __init__(self, seed: int, kinds: Iterable[str]) -> None:
        self._random = random.Random(seed)
        self._kinds = frozenset(kinds)
        self._failed = 0

    @staticmethod
    def parse(spelled: str) -> FaultInjector:
        """Parse a text like `7:shuffle,fail`; an empty one means no faults.

        Raise InputError for any other text.
        """
        if not spelled:
            return NO_FAULTS
        seed, _, listed = spelled.partition(":")
        kinds = listed.split(",")
        if not seed.isdecimal() or set(kinds) - {*KINDS}:
            raise InputError(
                f"invalid fault injection {spelled!r}",
                f"use a seed and kinds among {', '.join(KINDS)}, like `7:shuffle,fail`",
            )
        return FaultInjector(int(seed), kinds)

    def order(self, items: Sequence[T]) -> list[T]:
        """Return the items in the order to handle them, some of them twice."""
        ordered = list(items)
        if "duplicate" in self._kinds:
            ordered += [item for item in items if self._random.random() < 0.2]
        if "shuffle" in self._kinds:
            self._random.shuffle(ordered)
        return ordered

    def held_back(self, items: Sequence[T]) -> tuple[list[T], list[T]]:
        """Split the items into those to handle now and those to handle later."""
        now: list[T] = []
        later: list[T] = []
        share = self._random.random() / 2 if "delay" in self._kinds else 0.0
        for item in items:
            (later if self._random.random() < share else now).append(item)
        return now, later

    def parts(self, items: Sequence[T]) -> list[Sequence[T]]:
        """Split the items into the parts to handle one after the other."""
        if "split" not in self._kinds or len(items) < 2:
            return [items]
        cuts = sorted(self._random.sample(range(1, len(items)), min(2, len(items) - 1)))
        return [items[first:end] for first, end in zip([0, *cuts], [*cuts, None], strict=True)]

    def should_fail(self) -> bool:
        """Decide if the next call or commit fails."""
        fails = (
            "fail" in self._kinds
            and self._failed < _MAX_CONSECUTIVE_FAILURES
            and self._random.random() < 0.3
        )
        self._failed = self._failed + 1 if fails else 0
        return fails


NO_FAULTS = FaultInjector(0, ())
