"""Handover of the stream to another deployment, always between two batches.

On AWS the stream keeper (`lambda/stream_keeper`) writes the wanted deployment to a control object.
A stream of another deployment ends itself, and the keeper starts the next one. An erasure changes
the order's `restart` instead: the stream that has memory of erased rows ends in the same way.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from cdclake import naming
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.iceberg.error_policy import passing_cause

log = logging.getLogger("cdclake.stream")

CHECK_INTERVAL_S = 15
_RESTART = "restart"  # of the order: an id that differs after each erasure


class HandedOver(Exception):
    """The stream has ended and processes no further batches."""


class Handover:
    """Gate that lets batches through while the stream's deployment is the wanted one."""

    def __init__(self, control: ObjectStore, deployment: str | None) -> None:
        """Without a deployment (locally), the gate never closes."""
        self._control = control
        self._deployment = deployment
        self._restart = None if deployment is None else self._order().get(_RESTART)
        self._between_batches = threading.Lock()
        self._ended = False

    def guarded(self, batch: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
        """Wrap `batch` to raise HandedOver once the stream has ended; Spark replays it later."""

        def run(records: DataFrame, number: int) -> None:
            with self._between_batches:
                if self._ended or not self._is_wanted():
                    self._ended = True
                    raise HandedOver
                batch(records, number)

        return run

    def await_end(self, query: StreamingQuery, meanwhile: Callable[[], None]) -> None:
        """Wait until the query ends or another deployment is wanted; raise the query's error.

        Calls `meanwhile` at every check. Waits for a running batch. Spark may then not record its
        offsets: the batch is replayed, and the stamps show that its rows are already appended.
        """
        try:
            while not query.awaitTermination(CHECK_INTERVAL_S):
                meanwhile()
                if self._is_replaced():
                    with self._between_batches:
                        self._ended = True
                    query.stop()
        except StreamingQueryException:
            if not self._ended:
                raise
        if self._ended:
            log.info("stream ended: deployment %s was replaced or restarted", self._deployment)

    def _is_replaced(self) -> bool:
        """Return True if another deployment is wanted; False while S3 does not answer."""
        try:
            return not self._is_wanted()
        except Exception as error:
            if passing_cause(error) is None:
                raise
            log.warning("cannot read which deployment is wanted: %s", error)
            return False

    def _is_wanted(self) -> bool:
        if self._deployment is None:
            return True
        order = self._order()
        wanted = order.get("deployment", self._deployment)
        return wanted == self._deployment and order.get(_RESTART) == self._restart

    def _order(self) -> Mapping[str, Any]:
        stored = self._control.read(naming.STREAM_ORDER)
        return {} if stored is None else stored.content
