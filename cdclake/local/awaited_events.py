"""Waits of `up` for events of the source: the rows of snapshots, and a marker row."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from cdclake.activity import Advance, Sampler, step
from cdclake.errors import ComponentFailed
from cdclake.iceberg.schemas import all_schemas
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.iceberg.catalog_entries import table_entries
from cdclake.jobs.runtime.source import write_marker
from cdclake.local.firehose import component
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.connector_failures import remedy_for
from cdclake.local.lake.delivered_offsets import arrived_offsets
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.load_advance import advance_of
from cdclake.local.lake.no_answer import answer_or_unknown
from cdclake.local.lake.spark_jobs import STREAM
from cdclake.local.lake.table_loads import LoadingTable, tables_replacing, unfinished_loads
from cdclake.local.lake.topics import Heartbeat, MarkerReader
from cdclake.local.process.supervisor_client import log_tail
from cdclake.postgres.source_names import rereading_remedy

READY_TIMEOUT_S = 300.0  # for a cold JVM on a busy machine; an idle one takes a tenth
_POLL_S = 0.5
_SHOWN_EVERY_S = 2.0


class SentMarker:
    """Marker row that was written to the source, on its way through the pipeline."""

    def __init__(self, lake: LocalLake, markers: MarkerReader) -> None:
        self._lake, self._markers = lake, markers
        self._marker = os.urandom(8).hex()
        self._heartbeat: Heartbeat | None = None  # its event, once it is in Kafka
        write_marker(lake.dsn, self._marker)

    def is_committed(self) -> bool:
        """Return True if the stream has passed the marker, and every table and view exists."""
        if self._heartbeat is None:
            self._heartbeat = self._markers.find(self._marker)
        if self._heartbeat is None:
            return False
        has_passed = self._heartbeat.has_passed(Progress.load(self._lake.control))
        return has_passed and _all_objects_exist(self._lake)

    def advance(self) -> Advance:
        """Return the component that the marker waits for, and the rows that are read before it."""
        is_sent = self._heartbeat is not None
        waits_for = "the stream commits it" if is_sent else "the connector sends a marker row"
        loads = _advance_of_loads(self._lake)
        if loads is None:
            return Advance(now=waits_for)
        return replace(loads, now=f"{waits_for}, after the rows: {loads.now}")


def await_marker(lake: LocalLake, connector: ConnectorClient, markers: MarkerReader) -> None:
    """Wait until a marker row has passed from the source through the whole pipeline.

    Raise ComponentFailed if a component or the connector fails, or no event arrives for long.
    """
    marker = SentMarker(lake, markers)
    with step("wait for a change of the source to come through") as shown:
        sampler = Sampler(shown, marker.advance, _SHOWN_EVERY_S)
        _await(
            lake,
            connector,
            marker.is_committed,
            "no marker came through the stream",
            show=sampler.sample,
        )


def await_rows(lake: LocalLake) -> None:
    """Wait until the snapshot of every table is in the lake.

    Raise ComponentFailed as `await_marker` does, and if the source refuses to read a table.
    """
    connector = ConnectorClient(lake.endpoints.connect, lake.plan)

    def are_loaded() -> bool:
        loads = find_unfinished_loads(lake)
        _raise_refusal(lake, loads)
        return not loads

    missing = "the rows of a snapshot did not reach the lake"
    with step("read the tables") as shown:
        sampler = Sampler(shown, partial(_advance_of_loads, lake), _SHOWN_EVERY_S)
        _await(lake, connector, are_loaded, missing, show=sampler.sample)


def find_unfinished_loads(lake: LocalLake) -> dict[str, LoadingTable]:
    """Return the tables whose snapshot is not in the lake yet, by name."""
    progress = Progress.load(lake.control)
    arrived = arrived_offsets(lake.kafka, lake.plan, progress)
    return unfinished_loads(lake, arrived, tables_replacing(lake, progress))


def _advance_of_loads(lake: LocalLake) -> Advance | None:
    return advance_of(answer_or_unknown(partial(find_unfinished_loads, lake), {}))


def _raise_refusal(lake: LocalLake, loads: Mapping[str, LoadingTable]) -> None:
    for name, load in loads.items():
        if load.refused is not None:
            remedy = rereading_remedy(lake.plan.table(name))
            raise ComponentFailed(load.refused, remedy, "connect")


def _all_objects_exist(lake: LocalLake) -> bool:
    entries = table_entries(lake.client("glue"), lake.plan.lake_database)
    return {schema.name for schema in all_schemas(lake.plan)} <= entries.keys()


def _await(
    lake: LocalLake,
    connector: ConnectorClient,
    condition: Callable[[], bool],
    missing: str,
    *,
    show: Callable[[], None],
) -> None:
    """Wait for the condition, and call `show` after each look that finds it false.

    Raise ComponentFailed, `missing` first, after a time without events: both conditions follow
    snapshots, whose duration depends on the tables' size.
    """
    arrived, deadline = _arrived(lake), time.monotonic() + READY_TIMEOUT_S
    while not condition():
        show()
        _raise_failure(lake, connector)
        if time.monotonic() > deadline:
            before, arrived = arrived, _arrived(lake)
            if arrived == before:
                message = f"{missing}: no event arrived for {READY_TIMEOUT_S:.0f} s"
                raise _component_failed(lake, STREAM, message)
            deadline = time.monotonic() + READY_TIMEOUT_S
        time.sleep(_POLL_S)


def _arrived(lake: LocalLake) -> dict[str, Mapping[int, int]]:
    """Return the offsets that each table has reached in its topic."""
    return arrived_offsets(lake.kafka, lake.plan, Progress.load(lake.control))


def _raise_failure(lake: LocalLake, connector: ConnectorClient) -> None:
    """Raise ComponentFailed if a component does not run, or the connector has failed."""
    for part in stack.components(lake.home):
        if part["name"] == component.NAME:  # started later, when the changelogs exist
            continue
        if part["state"] not in ("running", "starting"):
            raise _component_failed(lake, part["name"], f"{part['name']} is {part['state']}")
    failure = connector.failure()
    if failure is not None:
        raise _component_failed(lake, "connect", f"the connector failed: {failure}", failure)


def _component_failed(
    lake: LocalLake, name: str, message: str, connector_failure: str = ""
) -> ComponentFailed:
    log = lake.home.log(name)
    remedy = remedy_for(connector_failure, lake.plan.source_object)
    remedy = remedy or f"read its log {log}, then run `cdclake up` again"
    return ComponentFailed(message, remedy, name, log_tail(log))
