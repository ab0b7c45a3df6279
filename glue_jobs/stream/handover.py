"""The end of a stream that another deployment is to go on with: between two batches, never in one.

On AWS the keeper (`lambda/stream_keeper`) writes into a control object which deployment is wanted.
A stream of any other ends itself, and the keeper starts the next one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from cdclake import naming
from cdclake.jobs.control.store import ObjectStore

log = logging.getLogger("cdclake.stream")

CHECK_INTERVAL_S = 15


class HandedOver(Exception):
    """The stream has ended and takes no more batches."""


class Handover:
    """Lets a stream's batches through as long as its deployment is the wanted one."""

    def __init__(self, control: ObjectStore, deployment: str | None) -> None:
        """Without a deployment, as locally, the stream is nobody's to end."""
        self._control = control
        self._deployment = deployment
        self._between_batches = threading.Lock()
        self._ended = False

    def guarded(self, batch: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
        """`batch`, which does nothing once the stream has ended: Spark runs it again later."""

        def run(records: DataFrame, number: int) -> None:
            with self._between_batches:
                if self._ended or not self._is_wanted():
                    self._ended = True
                    raise HandedOver
                batch(records, number)

        return run

    def await_end(self, query: StreamingQuery, meanwhile: Callable[[], None]) -> None:
        """Wait until the query ends, or another deployment is wanted; its error if it fails.

        `meanwhile` is called at every look.

        A batch that runs is waited for. Its offsets may not be noted any more: then it comes again,
        and the stamps say that its rows are there.
        """
        try:
            while not query.awaitTermination(CHECK_INTERVAL_S):
                meanwhile()
                if not self._is_wanted():
                    with self._between_batches:
                        self._ended = True
                    query.stop()
        except StreamingQueryException:
            if not self._ended:
                raise
        if self._ended:
            log.info("deployment %s is not the wanted one any more: ended", self._deployment)

    def _is_wanted(self) -> bool:
        if self._deployment is None:
            return True
        order = self._control.read(naming.STREAM_ORDER)
        return order is None or order.content["deployment"] == self._deployment
