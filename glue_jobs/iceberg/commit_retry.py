"""Retries of work whose commit conflicted with another writer's.

Iceberg retries a commit if only the catalog pointer moved, but rejects a MERGE or a rewrite if the
table's files changed meanwhile. Then the whole work must be repeated on the reloaded
table. The same holds if the outcome of a commit is unknown: the retry reads it from the stamp.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError

from cdclake.backoff import pause_after
from cdclake.errors import CommitConflict
from cdclake.jobs.iceberg.error_policy import Action, Kind, cause_for, policy

log = logging.getLogger("cdclake.conflicts")

MAX_TRIES = 5
FIRST_PAUSE_S, MAX_PAUSE_S = 1.0, 16.0

Result = TypeVar("Result")


def retry_on_conflict(table: str, work: Callable[[], Result]) -> Result:
    """Run `work` and return its result; run it again if its commit conflicts.

    `work` must reload the table each time. Raises CommitConflict after `MAX_TRIES` conflicts; other
    errors pass through.
    """
    for tries in range(1, MAX_TRIES + 1):
        try:
            return work()
        except Py4JJavaError as error:
            cause = cause_for(error, Action.RETRY)
            if cause is None:
                raise
            log.warning("table %s: try %d lost to another writer: %s", table, tries, cause.reason)
            reason = cause.reason
        pause(tries)
    raise CommitConflict(
        table,
        f"other writers changed it during {MAX_TRIES} tries: {reason}",
        policy(Kind.COMMIT_CONFLICT).remedy,
    )


def pause(tries: int) -> None:
    """Wait with exponential backoff and jitter for the other writer to finish."""
    time.sleep(pause_after(tries, FIRST_PAUSE_S, MAX_PAUSE_S))
