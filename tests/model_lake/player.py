"""Histories executed: each in a thread of its own, one statement after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from random import Random
from threading import Event
from typing import Any

import psycopg

from tests.model_lake.history import History, Step
from tests.model_lake.shapes import EMPTIED

# A writer that waits so long is hurt by the lake, which may never be: the statement fails.
_LONGEST_STATEMENT = "60s"


# Each may have three sessions, of the hundred that the lake's PostgreSQL takes.
_AT_ONCE = 25


class Players:
    """Threads that execute histories, all within about `seconds`."""

    def __init__(
        self,
        dsn: dict[str, Any],
        histories: Sequence[History],
        seconds: float,
        *,
        database_may_die: bool = False,
        truncates_later: bool = False,
    ) -> None:
        """Begin to play; histories that truncate wait for `allow_truncates` if they are to."""
        self._dsn = dsn
        self._truncates = Event()
        if not truncates_later:
            self._truncates.set()
        self._database_may_die = database_may_die
        self._seconds = seconds / math.ceil(len(histories) / _AT_ONCE)  # for each
        self._pool = ThreadPoolExecutor(_AT_ONCE)
        self._playing: list[Future[None]] = [self._pool.submit(self._survive, h) for h in histories]

    def allow_truncates(self) -> None:
        """Let the histories begin that truncate."""
        self._truncates.set()

    def wait(self) -> None:
        """Until all have ended; raises what a statement of theirs failed with."""
        for playing in self._playing:
            playing.result()
        self._pool.shutdown()

    def _survive(self, history: History) -> None:
        """Play the history; one whose database dies ends there, and its transactions with it."""
        try:
            self._play(history)
        except psycopg.OperationalError:
            if not self._database_may_die:
                raise

    def _play(self, history: History) -> None:
        if EMPTIED in history.shapes:
            self._truncates.wait()
        pauses = Random(history.seed)
        pause = self._seconds / len(history.steps)
        with ExitStack() as held:
            sessions = {
                number: held.enter_context(psycopg.connect(**self._dsn, autocommit=True))
                for number in sorted({step.session for step in history.steps})
            }
            for session in sessions.values():
                session.execute(f"SET statement_timeout = '{_LONGEST_STATEMENT}'")
            for step in history.steps:
                time.sleep(pauses.uniform(0, 2 * pause))
                execute(sessions[step.session], step)


def execute(session: psycopg.Connection[Any], step: Step) -> None:
    """One step in its session."""
    if step.copied:
        with session.cursor().copy(step.sql.encode()) as copy:
            copy.write(step.copied)
    else:
        session.execute(step.sql.encode())
