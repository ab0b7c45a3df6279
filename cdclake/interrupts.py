"""Signal handling: the first signal ends a command cleanly; cleanup ignores signals."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType
from typing import Any

_ENDING = (signal.SIGTERM, signal.SIGHUP)  # SIGINT raises KeyboardInterrupt by itself
_REPEAT_S = 5.0  # a closed terminal sends SIGHUP twice: by the shell and by the kernel


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit with the shell's exit code (128 + signal).

    A signal that the caller ignores, as `nohup` does, stays ignored.
    """
    ended_at = 0.0

    def leave(number: int, _: FrameType | None) -> None:
        nonlocal ended_at
        before, ended_at = ended_at, time.monotonic()
        if not before or ended_at - before > _REPEAT_S:
            raise SystemExit(128 + number)

    handled = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    with _handled(handled, leave):
        yield


def until_ended() -> AbstractContextManager[bool | None]:
    """Return a context for a command that runs until a signal, which is then no failure."""
    return suppress(KeyboardInterrupt, SystemExit)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore signals while processes are stopped and folders removed."""
    with _handled((signal.SIGINT, *_ENDING), signal.SIG_IGN):
        yield


@contextmanager
def _handled(
    numbers: Iterable[signal.Signals],
    handler: Callable[[int, FrameType | None], Any] | signal.Handlers,
) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
