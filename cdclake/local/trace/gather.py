"""The facts about one row of a running lake, from every part that has some."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import psycopg

from cdclake.control_objects import RESYNC, request_name
from cdclake.erasure_register import ErasureRegister
from cdclake.errors import CdcError, InputError
from cdclake.jobs.control.poll_state import read_poll, read_poll_error
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.forget.key_spellings import stored_spellings
from cdclake.jobs.reader.lake_row import read_lake_row
from cdclake.jobs.runtime.source import Connection, connect
from cdclake.jobs.runtime.source_key import key_by_source
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.delivered_offsets import arrived_offsets
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.no_answer import answer_or_unknown
from cdclake.local.lake.table_loads import tables_replacing, unfinished_loads
from cdclake.local.reader.duck import lake_reader
from cdclake.local.trace.kafka_events import Searched, kafka_events
from cdclake.local.trace.source_row import source_facts
from cdclake.plan import Table
from cdclake.trace.merged_events import merged_events
from cdclake.trace.row_key import RowKey, key_by_text
from cdclake.trace.trace_facts import FlowFacts, SourceFacts, TracedEvent, TraceFacts

_CONNECT_WAIT_S = 2.0


def trace_row(lake: LocalLake, name: str, words: Sequence[str]) -> TraceFacts:
    """Return what the lake's parts recorded of the row with this key.

    The offsets that the lake has reached are read first: what is before them then is in its tables,
    and what is after them is searched for in Kafka.
    """
    table = _table(lake, name)
    key, source = _in_source(lake, table, words)
    flow = _flow(lake, table)
    row = read_lake_row(lake_reader(lake), key)
    known_events = (*row.events, *row.quarantined)
    found: tuple[list[TracedEvent], Searched] | None = ([], {})
    if table.delivery != "poll":
        # The lake knows nothing of the row: even what it has processed may tell why.
        arrived = flow.arrived if known_events or source.has_row is False else {}
        found = answer_or_unknown(partial(kafka_events, lake, key, known_events, arrived), None)
    records, searched = found or ([], {})
    return TraceFacts(
        table=table,
        key=key.words,
        source=source,
        flow=replace(flow, searched=searched, kafka_answers=found is not None),
        events=merged_events(row.events, records, row.quarantined),
        has_earlier=row.has_earlier,
        truncates=row.truncates,
        applied_through_us=row.applied_through_us,
        state=row.state,
        state_row=row.state_row,
        current_row=row.current_row,
        erased_at=_erased_at(lake, key),
    )


def _erased_at(lake: LocalLake, key: RowKey) -> str:
    erased = ErasureRegister(lake.control, lambda: lake.mask_salt).read().get(key.table.name)
    return "" if erased is None else erased.erased_at(key.parts)


def _table(lake: LocalLake, name: str) -> Table:
    try:
        return lake.plan.table(name)
    except InputError as error:
        plan, file = lake.plan, lake.state.pipeline_file
        others = {*(each.name for each in plan.derived), *plan.sink_tables}
        others |= {table for stream in plan.put_streams for table in stream.tables}
        if name in others:
            raise InputError(
                f"{name!r} has no rows of the source, so they have no events",
                f"query it with `cdclake sql`, or {error.remedy}",
            ) from None
        raise InputError(
            f"{error.message}: {file} does not declare it, so its rows are not captured",
            f"declare the table in {file} and run `cdclake up {shlex.quote(file)}`,"
            f" or {error.remedy}",
        ) from None


def _in_source(lake: LocalLake, table: Table, words: Sequence[str]) -> tuple[RowKey, SourceFacts]:
    """Return the key in the changelog's form, and the source's row; without the source, neither."""
    with ExitStack() as opened:
        try:
            connection = opened.enter_context(connect(lake.dsn))
        except CdcError:
            return key_by_text(table, words), SourceFacts()
        key = _as_stored(lake, connection, key_by_source(connection, table, words))
        try:
            return key, source_facts(connection, lake.plan, key)
        except psycopg.Error:  # the table is gone, is locked, or may not be read
            return key, SourceFacts()


def _as_stored(lake: LocalLake, connection: Connection, key: RowKey) -> RowKey:
    """Return the key in the newest of the lake's spellings, unless the lake has that of the key."""
    spelled = stored_spellings(connection, lambda: lake_reader(lake), [key])
    return key if key in spelled else next(iter(spelled), key)


def _flow(lake: LocalLake, table: Table) -> FlowFacts:
    states = {part["name"]: part["state"] for part in stack.components(lake.home)}
    if table.delivery == "poll":
        return FlowFacts(
            is_paused=lake.state.paused,
            last_error=answer_or_unknown(partial(read_poll_error, lake.control, table), None),
            polled=answer_or_unknown(partial(read_poll, lake.control, table), None) is not None,
        )
    progress = Progress.load(lake.control)
    place = progress.tables.get(table.name, TableProgress())
    nothing: dict[str, Mapping[int, int]] = {}
    arrived = answer_or_unknown(lambda: arrived_offsets(lake.kafka, lake.plan, progress), nothing)
    replacing = tables_replacing(lake, progress)
    none: frozenset[str] = frozenset()
    loads = answer_or_unknown(lambda: frozenset(unfinished_loads(lake, arrived, replacing)), none)
    return FlowFacts(
        is_paused=lake.state.paused,
        is_stopped=not place.is_streaming,
        last_error=place.last_error,
        is_loading=lake.state.loading or table.name in loads,
        is_resyncing=lake.control.read(request_name(table.name, RESYNC)) is not None,
        writer_runs=states.get(table.writer) == "running",
        connector_error=answer_or_unknown(partial(_connector_error, lake), None)
        if states.get("connect") == "running"
        else "Kafka Connect is not running",
        arrived=dict(arrived.get(table.name, {})),
    )


def _connector_error(lake: LocalLake) -> str | None:
    return ConnectorClient(lake.endpoints.connect, lake.plan, wait_s=_CONNECT_WAIT_S).failure()
