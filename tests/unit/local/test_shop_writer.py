"""A writer of a load test that dies or writes nothing fails its test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Event
from typing import Any

import psycopg
import pytest

from tests.local.running import Business


class Source:
    """Connection that accepts statements, until it refuses them."""

    def __init__(self, statements: int) -> None:
        self._statements = statements
        self.has_refused = Event()

    @contextmanager
    def connect(self) -> Iterator[Source]:
        yield self

    def transaction(self) -> Any:
        return nullcontext()

    def execute(self, _: str) -> None:
        if not self._statements:
            self.has_refused.set()
            raise psycopg.OperationalError("the source is gone")
        self._statements -= 1


def business(source: Source, pause_s: float) -> Business:
    return Business(source, seed=1, pause_s=pause_s)  # type: ignore[arg-type]


def test_a_writer_that_dies_after_some_rounds_fails_the_block() -> None:
    source = Source(statements=50)
    with (
        pytest.raises(psycopg.OperationalError, match="the source is gone"),
        business(source, 0) as writer,
    ):
        assert source.has_refused.wait(10)
    assert writer.rounds > 0


def test_a_writer_without_a_round_fails_the_block() -> None:
    with pytest.raises(AssertionError, match="nothing was changed"), business(Source(9), 60):
        pass
