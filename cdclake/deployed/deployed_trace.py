"""The facts about one row of a deployment, from its lake's tables and control objects.

Its source and its Kafka are in a private network, so neither is asked: events that the lake has not
read are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from cdclake.control_objects import PAUSE, RESYNC, request_name
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.deployed_lake import DeployedLake
from cdclake.jobs.control.poll_state import read_poll, read_poll_error
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.reader.lake_row import read_lake_row
from cdclake.plan import Table
from cdclake.trace.merged_events import merged_events
from cdclake.trace.row_key import key_by_text
from cdclake.trace.trace_facts import FlowFacts, SourceFacts, TraceFacts


def trace_deployed_row(lake: DeployedLake, name: str, words: Sequence[str]) -> TraceFacts:
    """Return what the deployment's lake recorded of the row with this key.

    Raise InputError for an unknown table, and for a key that only the source can convert.
    """
    table = lake.plan.table(name, of="file")
    key = key_by_text(table, words, is_deployed=True)
    with explained(lake.name, "read the lake of"), TemporaryDirectory() as spill:
        flow = _flow(lake, table)
        row = read_lake_row(lake.reader(Path(spill)), key)
    return TraceFacts(
        table=table,
        key=key.words,
        source=SourceFacts(),
        flow=flow,
        events=merged_events(row.events, (), row.quarantined),
        has_earlier=row.has_earlier,
        truncates=row.truncates,
        applied_through_us=row.applied_through_us,
        state=row.state,
        state_row=row.state_row,
        current_row=row.current_row,
        is_deployed=True,
    )


def _flow(lake: DeployedLake, table: Table) -> FlowFacts:
    control = lake.control
    is_paused = control.read(PAUSE) is not None
    if table.delivery == "poll":
        return FlowFacts(
            is_paused=is_paused,
            last_error=read_poll_error(control, table),
            polled=read_poll(control, table) is not None,
        )
    place = Progress.load(control).tables.get(table.name, TableProgress())
    return FlowFacts(
        is_paused=is_paused,
        is_stopped=not place.is_streaming,
        last_error=place.last_error,
        is_resyncing=control.read(request_name(table.name, RESYNC)) is not None,
    )
