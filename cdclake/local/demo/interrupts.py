"""Signal handling: the first signal shuts the demo down cleanly; cleanup ignores signals."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_ENDING = (signal.SIGTERM, signal.SIGHUP)  # SIGINT raises KeyboardInterrupt by itself


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit with the shell's exit code (128 + signal)."""
    with _handled(_ENDING, _leave):
        yield


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore signals while processes are stopped and folders removed."""
    with _handled((signal.SIGINT, *_ENDING), signal.SIG_IGN):
        yield


@contextmanager
def _handled(
    numbers: tuple[signal.Signals, ...],
    handler: Callable[[int, FrameType | None], Any] | signal.Handlers,
) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def _leave(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
