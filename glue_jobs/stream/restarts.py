"""Restarts of the streaming query within its process, while S3, Glue or Kafka fail.

A new process would need minutes, and the stream keeper counts its failures. The micro-batch handles
failures of one table; this handles those of what all share: plan, progress, checkpoint, topics.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from pyspark.sql import DataFrame

from cdclake.backoff import pause_after
from cdclake.jobs.iceberg.error_policy import passing_cause

log = logging.getLogger("cdclake.stream")

FIRST_PAUSE_S, MAX_PAUSE_S = 2.0, 60.0

Batch = Callable[[DataFrame, int], None]


class Restarts:
    """Failures of the query's current and earlier starts, and the pauses between them."""

    def __init__(self) -> None:
        self._failures = 0
        self._raised: Exception | None = None

    def observed(self, batch: Batch) -> Batch:
        """Wrap `batch` to note its error: Spark hands on only the text of a Python error."""

        def run(records: DataFrame, number: int) -> None:
            self._raised = None
            try:
                batch(records, number)
            except Exception as error:
                self._raised = error
                raise
            self._failures = 0

        return run

    def run(self, start: Callable[[], None]) -> None:
        """Call `start` until it returns; call it again after a failure that will pass."""
        while True:
            self._raised = None
            try:
                start()
                return
            except Exception as error:
                cause = passing_cause(self._raised or error)
                if cause is None:
                    raise
                self._failures += 1
                pause = pause_after(self._failures, FIRST_PAUSE_S, MAX_PAUSE_S)
                log.warning(
                    "the query failed %d times in a row: %s; it starts again in %.0f s",
                    self._failures, cause.reason, pause,
                )  # fmt: skip
            time.sleep(pause)
