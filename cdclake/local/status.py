"""Data of `cdclake status`: components, tables stage by stage, and the replication slot."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeVar

from cdclake import naming
from cdclake.config.column_lines import Lines
from cdclake.firehose.redrive_stream import redrive_stream
from cdclake.jobs.control.last_verified import read_verified
from cdclake.jobs.control.poll_state import poll_figures, read_poll, read_poll_error
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.local.firehose.failed import Failed, failed_records
from cdclake.local.health import assess_health
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.connector_failures import remedy_for
from cdclake.local.lake.declared_connectors import connector_states, shown
from cdclake.local.lake.delivered_offsets import arrived_offsets
from cdclake.local.lake.lake import LakeState, LocalLake, describe_lake
from cdclake.local.lake.lake_components import lake_components
from cdclake.local.lake.newest_heartbeat import heartbeat_delays
from cdclake.local.lake.no_answer import answer_or_unknown
from cdclake.local.lake.offset_gap import Gap, find_gap
from cdclake.local.lake.source import slot_failover, slot_wal
from cdclake.local.lake.source_changes import SourceChange, source_changes
from cdclake.local.lake.source_relations import relation_changes
from cdclake.local.lake.table_loads import LoadingTable, tables_replacing, unfinished_loads
from cdclake.local.lake.topics import end_offsets
from cdclake.local.lake.widened_columns import follow_source
from cdclake.local.process.home import Home
from cdclake.local.puts.put_figures import put_table_figures, web_log_figures
from cdclake.local.reader.table_figures import table_figures
from cdclake.plan import Table
from cdclake.postgres.relations import RelationChange
from cdclake.postgres.source_names import rereading_remedy

_InKafka = tuple[
    Mapping[str, Mapping[int, int]],
    Mapping[str, Mapping[int, int]],
    Mapping[str, LoadingTable],
    Mapping[str, Gap],
]
_NOTHING: _InKafka = ({}, {}, {}, {})
_CONNECT_WAIT_S = 2.0  # for an answer that waits for nothing else
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class _Facts:
    """Facts about the whole lake, read once for all tables."""

    progress: Progress
    ends: Mapping[str, Mapping[int, int]]
    arrived: Mapping[str, Mapping[int, int]]
    connector_failure: str | None
    loads: Mapping[str, LoadingTable]  # unfinished snapshots, by table
    loading: bool  # True during the epoch's initial bulk load
    gaps: Mapping[str, Gap]  # of stopped tables
    failed: Mapping[str, Failed]  # by table that Firehose delivers
    changes: Mapping[str, list[SourceChange]] | None  # None: the source does not answer
    relations: Mapping[str, list[RelationChange]] | None
    lines: Lines
    verified: Mapping[str, dict[str, Any]]  # the newest comparison of each table


def lake_status(home: Home) -> dict[str, Any]:
    """Return the contract's object; figures that need a dead or starting component are null."""
    state = LakeState.load(home)
    components = lake_components(home, state)
    if not state.plan or not components:
        answer: dict[str, Any] = {"components": components, "tables": [], "slot": None}
        return {**answer, **assess_health(answer)}
    lake = describe_lake(home, state)
    running = {part["name"] for part in components if part["state"] == "running"}
    if lake.plan.tables and "aws" in running and (state.external or "postgres" in running):
        lake = answer_or_unknown(partial(follow_source, lake), lake)
    tables = _tables(lake, running) if lake.plan.all_tables else []
    answer = {
        "components": components,
        "epoch": state.epoch,
        "paused": state.paused,
        "no_stream": state.bare and bool(state.epoch and lake.plan.tables),
        "file": state.pipeline_file,
        "tables": tables,
        "web_logs": _figures(web_log_figures, lake, running),
        "puts": _figures(put_table_figures, lake, running),
        "connectors": _connectors(lake, running),
        "schedules": stack.schedules(home),
        "slot": _slot(lake, running) if lake.plan.tables else None,
        "heartbeat": _heartbeat(lake, tables),
    }
    return {**answer, **assess_health(answer)}


def with_components(home: Home, status: Mapping[str, Any]) -> dict[str, Any]:
    """Return an earlier status with the components as they are now; no component is asked."""
    answer = {**status, "components": lake_components(home, LakeState.load(home))}
    return {**answer, **assess_health(answer)}


def _figures(
    read: Callable[[LocalLake], list[dict[str, Any]]], lake: LocalLake, running: set[str]
) -> list[dict[str, Any]]:
    """Return the figures of put records; [] if their tables cannot be read."""
    return answer_or_unknown(partial(read, lake), []) if "aws" in running else []


def _connectors(lake: LocalLake, running: set[str]) -> list[dict[str, Any]]:
    """Return the states of the declared connectors; [] if Connect does not answer."""
    if not {"kafka", "connect"} <= running:
        return []
    return answer_or_unknown(lambda: shown(connector_states(lake)), [])


def _tables(lake: LocalLake, running: set[str]) -> list[dict[str, Any]]:
    if "aws" not in running:
        error = "the local S3 and Glue are not running"
        return [_unknown(table, error) for table in lake.plan.all_tables]
    progress = answer_or_unknown(lambda: Progress.load(lake.control), None)
    # DuckDB opens its session and reads files while Kafka and the source are asked.
    with ThreadPoolExecutor(max_workers=1) as pool:
        reading = pool.submit(answer_or_unknown, partial(table_figures, lake), None)
        facts = None if progress is None else _facts(lake, progress, running)
        figures = reading.result()
    if facts is None or figures is None:
        error = "the local S3 and Glue do not answer yet"
        return [_unknown(table, error) for table in lake.plan.all_tables]
    return [
        *(_table(table, facts, figures[table.name], running) for table in lake.plan.tables),
        *(_polled(lake, table, facts, figures[table.name]) for table in lake.plan.polled),
    ]


def _facts(lake: LocalLake, progress: Progress, running: set[str]) -> _Facts:
    lines = Lines(lake.state.pipeline_file)
    ends, arrived, loads, gaps = (
        answer_or_unknown(lambda: _in_kafka(lake, progress), _NOTHING)
        if "kafka" in running
        else _NOTHING
    )
    return _Facts(
        progress=progress,
        ends=ends,
        arrived=arrived,
        connector_failure=_connector_failure(lake) if {"kafka", "connect"} <= running else None,
        loading=lake.state.loading,
        loads=loads,
        gaps=gaps,
        failed=answer_or_unknown(lambda: _failed(lake), {}),
        changes=_asked(lake, running, lambda: source_changes(lake, lines)),
        relations=_asked(lake, running, lambda: relation_changes(lake)),
        lines=lines,
        verified=answer_or_unknown(lambda: _verified(lake), {}),
    )


def _polled(
    lake: LocalLake, table: Table, facts: _Facts, figures: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the line of a table that queries read: it has no topic, and its changes no log."""
    found = answer_or_unknown(lambda: read_poll(lake.control, table), None)
    error = answer_or_unknown(lambda: read_poll_error(lake.control, table), None)
    return {
        **_unknown(table, ""),
        **figures,
        **poll_figures(found, error, time.time()),
        **({"state": "paused"} if lake.state.paused else {}),
        "failed": 0,
        "source_changes": [],
        "relation_changes": [],
        "last_verified": facts.verified.get(table.name),
    }


def _verified(lake: LocalLake) -> dict[str, dict[str, Any]]:
    return {name: asdict(found) for name, found in read_verified(lake.control).items()}


def _connector_failure(lake: LocalLake) -> str | None:
    connector = ConnectorClient(lake.endpoints.connect, lake.plan, wait_s=_CONNECT_WAIT_S)
    failure = answer_or_unknown(connector.failure, None)
    remedy = remedy_for(failure or "", lake.plan.source_object)
    return f"{failure}. Remedy: {remedy}" if remedy else failure


def _in_kafka(lake: LocalLake, progress: Progress) -> _InKafka:
    arrived = arrived_offsets(lake.kafka, lake.plan, progress)
    ends = end_offsets(lake.kafka, [table.topic for table in lake.plan.tables])
    loads = unfinished_loads(lake, arrived, tables_replacing(lake, progress))
    return ends, arrived, loads, _gaps(lake, progress)


def _gaps(lake: LocalLake, progress: Progress) -> dict[str, Gap]:
    found = {
        table.name: find_gap(lake.kafka, table.topic, place)
        for table in lake.plan.tables
        if (place := progress.tables.get(table.name)) is not None and not place.is_streaming
    }
    return {name: gap for name, gap in found.items() if gap is not None}


def _failed(lake: LocalLake) -> dict[str, Failed]:
    found: dict[str, Failed] = {}
    redrive = redrive_stream(lake.plan)
    # Failed redrives name no table, so they are shown for all tables without another failure.
    for stream in (*([redrive] if redrive else []), *lake.plan.deliveries):
        name = naming.delivery_stream_name(lake.plan.name, stream.name)
        failed = failed_records(lake.client("s3"), lake.bucket, stream, name)
        if failed is not None:
            found |= dict.fromkeys(stream.tables, failed)
    return found


def _asked(lake: LocalLake, running: set[str], ask: Callable[[], _Answer]) -> _Answer | None:
    """Return the source's answer; None if it does not answer."""
    if not lake.state.external and "postgres" not in running:
        return None
    return answer_or_unknown(ask, None)


def _table(
    table: Table, facts: _Facts, figures: Mapping[str, Any], running: set[str]
) -> dict[str, Any]:
    progress = facts.progress.tables.get(table.name, TableProgress())
    ends = facts.ends.get(table.topic)
    return {
        "table": table.name,
        "source": table.source,
        "delivery": table.delivery,
        "topic": None if table.polling else table.topic,
        **figures,
        "state_age_s": progress.state_age_s(time.time()),
        "lag_events": None if ends is None else _lag(ends, facts.arrived.get(table.name, {})),
        "end_offset": None if ends is None else sum(ends.values()),
        "state": _state(table, progress, facts, running),
        "loading": load.to_json() if (load := facts.loads.get(table.name)) else None,
        "last_error": _last_error(table, progress, facts),
        "failed": failed.records if (failed := facts.failed.get(table.name)) else 0,
        "gap": gap.to_json() if (gap := facts.gaps.get(table.name)) else None,
        "lines": [facts.lines.of(table, column) for column in progress.columns],
        "source_changes": _shown(facts.changes, table),
        "relation_changes": _shown(facts.relations, table),
        "polled": None,
        "last_verified": facts.verified.get(table.name),
    }


def _last_error(table: Table, progress: TableProgress, facts: _Facts) -> str | None:
    gap, load = facts.gaps.get(table.name), facts.loads.get(table.name)
    if load is not None and load.refused is not None:
        read = rereading_remedy(table)
        return f"{load.refused}. Fix the cause, then {read}"
    if gap is None or gap.lost_events == 0:
        failed = facts.failed.get(table.name)
        undelivered = _describe_failed(failed) if failed else None
        return progress.last_error or progress.oversized or facts.connector_failure or undelivered
    return (
        f"{progress.last_error}. Kafka has deleted {gap.lost_events} events of the gap: fix the"
        f" cause, then {rereading_remedy(table)}, which reads all rows of the source"
    )


def _describe_failed(failed: Failed) -> str:
    return f"{failed}. Fix the cause, then run `cdclake redrive` to process them again"


def _shown(
    changes: Mapping[str, list[SourceChange]] | Mapping[str, list[RelationChange]] | None,
    table: Table,
) -> list[dict[str, Any]] | None:
    return None if changes is None else [change.to_json() for change in changes[table.name]]


def _lag(ends: Mapping[int, int], offsets: Mapping[int, int]) -> int:
    """Count the records in Kafka that are not in the lake yet, including tombstones of deletes."""
    return sum(max(0, end - offsets.get(partition, 0)) for partition, end in ends.items())


def _state(table: Table, progress: TableProgress, facts: _Facts, running: set[str]) -> str:
    if facts.loading:
        return "loading"
    if not progress.is_streaming:
        return "stopped"
    if table.name in facts.loads:
        return "loading"
    return "streaming" if table.writer in running else "waiting"


def _unknown(table: Table, error: str) -> dict[str, Any]:
    counts = (
        *("changes_rows", "state_rows", "live_rows", "state_age_s", "lag_events", "freshness_s"),
        *("incomplete", "quarantined", "withheld", "end_offset", "files"),
        *("freshness_p50_s", "freshness_p95_s", "unapplied_rows"),
    )
    return {
        "table": table.name,
        "source": table.source,
        "delivery": table.delivery,
        "topic": None if table.polling else table.topic,
        **dict.fromkeys(counts),
        "state": "unknown",
        "loading": None,
        "last_error": error,
        "failed": None,
        "gap": None,
        "lines": [],
        "source_changes": None,
        "relation_changes": None,
        "polled": None,
        "last_verified": None,
    }


def _heartbeat(lake: LocalLake, tables: list[dict[str, Any]]) -> dict[str, float] | None:
    """Return its delays; None if Kafka has not answered about the tables: it is not waited for."""
    answers = any(table["end_offset"] is not None for table in tables)
    return answer_or_unknown(partial(heartbeat_delays, lake), None) if answers else None


def _slot(lake: LocalLake, running: set[str]) -> dict[str, Any] | None:
    if not lake.state.external and "postgres" not in running:
        return None
    name = lake.plan.source_object
    found = answer_or_unknown(
        lambda: (slot_wal(lake.dsn, name), slot_failover(lake.dsn, name)), None
    )
    if found is None:  # reported as the component's state
        return None
    wal, (failover, problem) = found
    return {
        "name": naming.source_object(lake.plan.name),
        "wal_bytes": wal.retained,
        "unconfirmed_bytes": wal.unconfirmed,
        "limit_bytes": wal.limit,
        "wal_position": wal.position,
        "failover": failover,
        "failover_problem": problem,
    }
