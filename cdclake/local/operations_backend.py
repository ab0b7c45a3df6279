"""`replay` and `resync`: asked of the stream, which is the log's only writer, and waited for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from cdclake.errors import ComponentFailed, NotRunning, TableError
from cdclake.jobs.control import requests
from cdclake.jobs.control.progress import Progress, TableProgress
from cdclake.jobs.control.requests import REPLAY, RESYNC
from cdclake.jobs.runtime.source import is_signalled, signal_snapshot, write_marker
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.offset_gap import find_gap
from cdclake.local.lake.spark_jobs import STREAM
from cdclake.local.lake.topics import end_offsets
from cdclake.local.reader.table_figures import last_position
from cdclake.plan import Table

REPLAY_TIMEOUT_S = 300.0
RESYNC_TIMEOUT_S = 3600.0
_POLL_S = 0.3

Answer = dict[str, Any]


def ask_replay(lake: LocalLake, tables: Iterable[Table]) -> dict[str, str]:
    """Ask for the tables' quarantined events to be tried again; the requests' ids by table."""
    ids = {}
    with lake.home.changing():
        for table in tables:
            ids[table.name] = requests.request_replay(lake.control, table.name)
    write_marker(lake.dsn)  # so that a batch comes now
    return ids


def ask_resync(lake: LocalLake, table: Table) -> str:
    """Ask for the table to be read again and swept at the end; the request's id.

    A request that is under way already is answered with its id. The position that the sweep stands
    at is noted before the reading is asked for: the log knows nothing above it, and whatever the
    reading brings, or changes meanwhile, has its place above it.
    """
    with lake.home.changing():
        request = requests.resync_under_way(
            lake.control, table.name, lambda request: is_signalled(lake.dsn, request)
        )
        return request or _new_resync(lake, table)


def _new_resync(lake: LocalLake, table: Table) -> str:
    refuse_if_read(lake, [table])
    request = request_resync(lake, table, last_position(lake, table))
    signal_snapshot(lake.dsn, [table], request)
    return request


def refuse_if_read(lake: LocalLake, tables: Iterable[Table]) -> None:
    """TableError if the connector reads one of the tables now."""
    reading = ConnectorClient(lake.endpoints.connect, lake.plan).reading()
    for table in tables:
        if table.source in reading:
            raise requests.being_read(table.name)


def request_resync(
    lake: LocalLake, table: Table, known: str | None, *, rejoins: bool = False
) -> str:
    """`requests.request_resync` of this lake; the request's id."""
    notifications = lake.plan.notification_topic
    return requests.request_resync(
        lake.control,
        table.name,
        epoch=lake.state.epoch,
        known=known,
        notified=end_offsets(lake.kafka, [notifications])[notifications][0],
        rejoins=rejoins,
    )


def check_flowing(lake: LocalLake) -> None:
    """NotRunning if nobody would take a request up."""
    if lake.state.paused:
        raise NotRunning("the stream is paused", "run `cdclake resume`, then this again")
    for name, state in _not_alive(lake).items():
        raise NotRunning(f"{name} is {state}", "run `cdclake up`, then this again")


def _not_alive(lake: LocalLake) -> dict[str, str]:
    """The parts that a request needs and that do not live, with their state."""
    states = {part["name"]: part["state"] for part in stack.components(lake.home)}
    needed = {name: states.get(name, "stopped") for name in ("kafka", "connect", "aws", STREAM)}
    return {name: state for name, state in needed.items() if state not in ("running", "starting")}


def stopped(lake: LocalLake, table: Table) -> TableError | None:
    """Why the stream does nothing for this table now; None if it flows."""
    progress = Progress.load(lake.control)
    found = progress.tables.get(table.name, TableProgress())
    if found.state != "stopped":
        return None
    return TableError(
        table.name,
        f"it is stopped: {found.last_error}",
        "run `cdclake resume`, and when `cdclake status` shows it streaming, this again",
    )


def rejoin_after_loss(lake: LocalLake, table: Table, wait_s: float = REPLAY_TIMEOUT_S) -> None:
    """Have a stopped table go on from what Kafka still keeps, and wait until it flows.

    Its TableError if nothing of its gap is lost, or if it stops again. For a resync, which reads
    what was lost from the source.
    """
    trouble = stopped(lake, table)
    if trouble is None:
        return
    gap = find_gap(lake.kafka, table.topic, Progress.load(lake.control).table(table.name))
    if gap is None or gap.lost_events == 0:
        raise trouble
    requests.request_skip_gap(lake.control, table.name)
    deadline = time.monotonic() + wait_s
    while stopped(lake, table) is not None:
        if time.monotonic() > deadline:
            raise trouble
        time.sleep(_POLL_S)


def await_outcomes(
    lake: LocalLake, verb: str, ids: Mapping[str, str], wait_s: float
) -> dict[str, Answer]:
    """What the stream says of each request when all are done.

    ComponentFailed if a part fails, the wait runs out, or a repair failed; the requests stay, and
    the stream goes on with them.
    """
    deadline = time.monotonic() + wait_s
    connector = ConnectorClient(lake.endpoints.connect, lake.plan)
    done: dict[str, Answer] = {}
    while True:
        for table in ids.keys() - done.keys():
            told = requests.outcome(lake.control, table, verb, ids[table])
            if told is not None:
                done[table] = told
        missing = sorted(ids.keys() - done.keys())
        if not missing:
            break
        _check_progress(lake, connector, [lake.plan.table(name) for name in missing])
        if time.monotonic() > deadline:
            raise _ran_out(verb, missing, wait_s)
        time.sleep(_POLL_S)
    return done


def _check_progress(lake: LocalLake, connector: ConnectorClient, tables: Iterable[Table]) -> None:
    """Raise what keeps the tables' requests from being done."""
    for name, state in _not_alive(lake).items():
        raise ComponentFailed(
            f"{name} is {state}", "run `cdclake up`: the request goes on then", component=name
        )
    failure = connector.failure()
    if failure is not None:
        raise ComponentFailed(
            f"the connector failed: {failure}",
            "mend it and run `cdclake up`: the request goes on then",
            component="connect",
        )
    for table in tables:
        if (trouble := stopped(lake, table)) is not None:
            raise trouble


def _ran_out(verb: str, tables: list[str], wait_s: float) -> ComponentFailed:
    return ComponentFailed(
        f"{verb} of {', '.join(tables)} was not done within {wait_s:.0f} s; it goes on",
        f"look at `cdclake status`; `cdclake {verb}` again waits for the same request",
        component=STREAM,
    )


def replay(lake: LocalLake, tables: Iterable[Table], wait_s: float = REPLAY_TIMEOUT_S) -> Answer:
    """Have the tables' quarantined events tried again, and wait; what `replay` answers.

    A stopped table is left out and named as such.
    """
    troubles = {table.name: stopped(lake, table) for table in tables}
    flowing = [lake.plan.table(name) for name, trouble in troubles.items() if trouble is None]
    outcomes = await_outcomes(lake, REPLAY, ask_replay(lake, flowing), wait_s)
    told = [
        {"table": name, "did": f"nothing: {trouble}"}
        if trouble is not None
        else {"table": name, **requests.replay_result(outcomes[name])}
        for name, trouble in troubles.items()
    ]
    return {"ok": True, "tables": told}


def resync(
    lake: LocalLake, table: Table, request: str, *, wait: bool, wait_s: float = RESYNC_TIMEOUT_S
) -> Answer:
    """Wait for the request, unless told not to; what `resync` answers."""
    if not wait:
        did: Answer = {"did": "asked for; the stream sweeps when all rows have been read"}
    else:
        outcome = await_outcomes(lake, RESYNC, {table.name: request}, wait_s)[table.name]
        did = requests.resync_result(outcome)
    return {"ok": True, "tables": [{"table": table.name, **did}]}
