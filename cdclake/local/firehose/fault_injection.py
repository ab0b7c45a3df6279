"""Misbehaviour on request, each kind of which Firehose's documentation allows; seeded.

Nothing is lost by it: what fails is tried again, what is held back comes later.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

from cdclake.errors import InputError

T = TypeVar("T")

KINDS = ("shuffle", "duplicate", "delay", "split", "fail")
_MAX_CONSECUTIVE_FAILURES = 2  # failures, fewer than anybody retries


class Trouble:
    """What goes wrong next; the same seed, the same trouble."""

    def __init__(self, seed: int, kinds: Iterable[str]) -> None:
        self._random = random.Random(seed)
        self._kinds = frozenset(kinds)
        self._failed = 0

    @staticmethod
    def parse(spelled: str) -> Trouble:
        """Of a text like `7:shuffle,fail`; an empty one asks for none.

        InputError for what is no such text.
        """
        if not spelled:
            return CALM
        seed, _, listed = spelled.partition(":")
        kinds = listed.split(",")
        if not seed.isdecimal() or set(kinds) - {*KINDS}:
            raise InputError(
                f"{spelled!r} asks for no trouble that there is",
                f"write a seed and kinds of {', '.join(KINDS)}, like `7:shuffle,fail`",
            )
        return Trouble(int(seed), kinds)

    def order(self, things: Sequence[T]) -> list[T]:
        """The things in the order in which they are handled, some of them twice."""
        ordered = list(things)
        if "duplicate" in self._kinds:
            ordered += [thing for thing in things if self._random.random() < 0.2]
        if "shuffle" in self._kinds:
            self._random.shuffle(ordered)
        return ordered

    def held_back(self, things: Sequence[T]) -> tuple[list[T], list[T]]:
        """Those that are handled now, and those that come later."""
        now: list[T] = []
        later: list[T] = []
        share = self._random.random() / 2 if "delay" in self._kinds else 0.0
        for thing in things:
            (later if self._random.random() < share else now).append(thing)
        return now, later

    def parts(self, things: Sequence[T]) -> list[Sequence[T]]:
        """The things in the parts in which they are handled."""
        if "split" not in self._kinds or len(things) < 2:
            return [things]
        cuts = sorted(self._random.sample(range(1, len(things)), min(2, len(things) - 1)))
        return [things[first:end] for first, end in zip([0, *cuts], [*cuts, None], strict=True)]

    def strikes(self) -> bool:
        """Whether the next call, or the next commit, fails."""
        strikes = (
            "fail" in self._kinds
            and self._failed < _MAX_CONSECUTIVE_FAILURES
            and self._random.random() < 0.3
        )
        self._failed = self._failed + 1 if strikes else 0
        return strikes


CALM = Trouble(0, ())
