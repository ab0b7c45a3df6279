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
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError

from cdclake.errors import CdcError, TableError

log = logging.getLogger("cdclake.conflicts")

MAX_TRIES = 5
FIRST_PAUSE_S = 1.0  # doubled with each try, and half of it by chance
_EXCEPTIONS = "org.apache.iceberg.exceptions."
REFUSED = f"{_EXCEPTIONS}ValidationException"  # what another writer did meanwhile rules it out
_LOST = (REFUSED, f"{_EXCEPTIONS}CommitFailedException")
_UNKNOWN = f"{_EXCEPTIONS}CommitStateUnknownException"
MISSING = (f"{_EXCEPTIONS}NotFoundException", f"{_EXCEPTIONS}NoSuchTableException")

Result = TypeVar("Result")


class CommitConflict(TableError):
    """Other writers kept changing the table under the work on it."""


class Fenced(CdcError):
    """Another stream has written since this one looked: this one is no longer the log's writer."""

    code = "fenced"


def retry_on_conflict(table: str, work: Callable[[], Result]) -> Result:
    """What `work` answers, which looks at the table anew whenever its commit has lost.

    CommitConflict if it has lost `MAX_TRIES` times; every other error as it is.
    """
    for tries in range(1, MAX_TRIES + 1):
        try:
            return work()
        except Py4JJavaError as error:
            cause = cause_of(error, *_LOST, _UNKNOWN)
            if cause is None:
                raise
            log.warning("table %s: try %d lost to another writer: %s", table, tries, cause)
            reason = cause
        pause(tries)
    raise CommitConflict(
        table,
        f"other writers changed it under {MAX_TRIES} tries: {reason}",
        "look which other job or tool writes it, and have it wait",
    )


def pause(tries: int) -> None:
    """Give whoever was quicker time to end."""
    time.sleep(FIRST_PAUSE_S * 2 ** (tries - 1) * random.uniform(0.5, 1.0))


def cause_of(error: Py4JJavaError, *exceptions: str) -> str | None:
    """The first line of the one of these Java exceptions that is behind the error, if any is."""
    for cause in _causes(error.java_exception):
        if cause.getClass().getName() in exceptions:
            return (str(cause.getMessage()).splitlines() or ["no reason given"])[0]
    return None


def _causes(error: Any) -> Iterator[Any]:
    while error is not None:
        yield error
        error = error.getCause()
