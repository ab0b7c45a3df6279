"""Update of the chosen tables' states: one Spark job for all, then their commits side by side."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from pyspark.sql import SparkSession

from cdclake.errors import CommitConflict
from cdclake.jobs.apply.state_job import Answer, StateRequest
from cdclake.jobs.apply.state_table import apply_request, write_states
from cdclake.jobs.stream.table_stream import TableStream

log = logging.getLogger("cdclake.stream")

RunAll = Callable[[Callable[[TableStream], None], Sequence[TableStream]], None]


class StateRound:
    """Updates of the states that are due in a batch, each by one part of what it lacks at most."""

    def __init__(self, spark: SparkSession, stop_after: Callable[[Exception, TableStream], None]):
        self._spark = spark
        self._stop_after = stop_after
        self._requests: dict[str, StateRequest] = {}
        self._written: dict[str, Answer] = {}
        self.updated: list[TableStream] = []  # states with a commit
        self.caught_up: list[TableStream] = []

    def run(self, streams: Sequence[TableStream], run_all: RunAll) -> None:
        """Update the states whose lease is free; `run_all` runs work for each on threads."""
        with ExitStack() as leases:
            held = [s for s in streams if leases.enter_context(s.leases.try_hold(s.table.name))]
            run_all(self._request, held)
            requested = [s for s in held if s.table.name in self._requests]
            updates = {s.table.name: s.update for s in requested}
            self._written = write_states(self._spark, self._requests, updates)
            run_all(self._commit, requested)

    def _request(self, stream: TableStream) -> None:
        try:
            request = stream.update.request(stream.through)
        except Exception as error:
            self._stop_after(error, stream)
            return
        if request is None:
            self.caught_up.append(stream)
        else:
            self._requests[stream.table.name] = request

    def _commit(self, stream: TableStream) -> None:
        name = stream.table.name
        request, written = self._requests[name], self._written.get(name)
        try:
            apply_request(stream.update, request, stream.through, written)
        except CommitConflict as error:  # a later batch catches up
            log.warning("%s", error)
        except Exception as error:
            self._stop_after(error, stream)
        else:
            self.updated.append(stream)
            if request.pending.through == stream.through:
                self.caught_up.append(stream)
