"""Retries of work whose commit conflicted with another writer's.

Iceberg retries a commit if only the catalog pointer moved, but rejects a MERGE or a rewrite if the
table's files changed meanwhile. Then the whole work must be repeated on the reloaded table
(correctness 3.2). The same holds if the outcome of a commit is unknown: the retry reads it from the
stamp.
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
FIRST_PAUSE_S = 1.0  # doubled with each try, with jitter
_EXCEPTIONS = "org.apache.iceberg.exceptions."
REFUSED = f"{_EXCEPTIONS}ValidationException"  # conflicts with another writer's commit
_LOST = (REFUSED, f"{_EXCEPTIONS}CommitFailedException")
_UNKNOWN = f"{_EXCEPTIONS}CommitStateUnknownException"
MISSING = (f"{_EXCEPTIONS}NotFoundException", f"{_EXCEPTIONS}NoSuchTableException")

Result = TypeVar("Result")


class CommitConflict(TableError):
    """Table that other writers kept changing during all tries."""


class Fenced(CdcError):
    """Another stream has written to the changelog since this one read its stamp."""

    code = "fenced"


def retry_on_conflict(table: str, work: Callable[[], Result]) -> Result:
    """Run `work` and return its result; run it again if its commit conflicts.

    `work` must reload the table each time. Raises CommitConflict after `MAX_TRIES` conflicts; other
    errors pass through.
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
        f"other writers changed it during {MAX_TRIES} tries: {reason}",
        "find the other job or tool that writes to it, and run it at another time",
    )


def pause(tries: int) -> None:
    """Wait with exponential backoff and jitter for the other writer to finish."""
    time.sleep(FIRST_PAUSE_S * 2 ** (tries - 1) * random.uniform(0.5, 1.0))


def cause_of(error: Py4JJavaError, *exceptions: str) -> str | None:
    """Return the first line of the cause that is one of these Java exceptions, if any."""
    for cause in _causes(error.java_exception):
        if cause.getClass().getName() in exceptions:
            return (str(cause.getMessage()).splitlines() or ["no reason given"])[0]
    return None


def _causes(error: Any) -> Iterator[Any]:
    while error is not None:
        yield error
        error = error.getCause()
