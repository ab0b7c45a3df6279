"""Commits that lose against another writer's, and the work behind them, done again.

Iceberg tries a commit again only if the catalog was quicker; that the table's files changed under a
MERGE or a rewrite is refused for good. Then only the whole work, from a fresh look at the table on,
may be repeated (correctness 3.2). The same holds where nobody knows whether a commit got through:
the stamp tells whoever looks again.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from py4j.protocol import Py4JJavaError

from cdclake.errors import CommitConflict
from cdclake.jobs.iceberg.error_policy import Action, Kind, cause_for, policy

log = logging.getLogger("cdclake.conflicts")

MAX_TRIES = 5
FIRST_PAUSE_S = 1.0  # doubled with each try, and half of it by chance

Result = TypeVar("Result")


def retry_on_conflict(table: str, work: Callable[[], Result]) -> Result:
    """What `work` answers, which looks at the table anew whenever its commit has lost.

    CommitConflict if it has lost `MAX_TRIES` times; every other error as it is.
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
        f"other writers changed it under {MAX_TRIES} tries: {reason}",
        policy(Kind.COMMIT_CONFLICT).remedy,
    )


def pause(tries: int) -> None:
    """Give whoever was quicker time to end."""
    time.sleep(FIRST_PAUSE_S * 2 ** (tries - 1) * random.uniform(0.5, 1.0))
