"""Work that is repeated in the background while a test looks on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(work: Callable[[], object], every_s: float = 0.0) -> Iterator[list[int]]:
    """Repeat the work on a thread while the block runs; yields the number of rounds, in a list.

    Between two rounds it waits. An error of the work ends it, and fails the block.
    """
    closed, rounds = threading.Event(), [0]
    errors: list[Exception] = []

    def run() -> None:
        try:
            while not closed.wait(every_s):
                work()
                rounds[0] += 1
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield rounds
    finally:
        closed.set()
        thread.join()
    assert not errors, errors
