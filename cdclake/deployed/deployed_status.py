"""`cdclake status --target aws`: what runs, how fresh each table is, and which alarms are on.

Everything is read from the outside: Glue, MSK Connect, CloudWatch, and the control objects and
table metadata in S3. Kafka and the source are in the private network: the lag is the stream's own
metric, and the WAL of the slot is RDS's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any

import boto3

from cdclake import metrics, naming
from cdclake.config.source_metrics import LOGICAL_LAG, WAL_ON_DISK, source_dimensions
from cdclake.connectors.declared import connector_log
from cdclake.connectors.find_connector import find_connector
from cdclake.control_objects import PAUSE
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.deployed_lake import DeployedLake
from cdclake.deployed.held_events import held_events
from cdclake.deployed.lasting_failures import FailedRun, failed_records, failed_runs
from cdclake.errors import InputError
from cdclake.jobs.control.last_verified import read_verified
from cdclake.jobs.control.poll_state import poll_figures, read_poll, read_poll_error
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_life import Held, Resuming, Stopped, Streaming
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.reader.catalog import Catalog, CatalogTable
from cdclake.plan import Table
from cdclake.runbooks import alarm_runbook

_THREADS = 8
_OWN_RECENT = timedelta(minutes=5)  # the stream publishes each minute while it runs
_RECENT = timedelta(minutes=30)  # a metric of AWS may be late
_WANTED = ("running", "scheduled", "paused", "off")
_OF_A_PROCESS = dict.fromkeys(("pid", "port"))  # which a service of AWS does not show
_RUNNING = ("STARTING", "RUNNING", "WAITING")


def deployed_status(lake: DeployedLake) -> dict[str, Any]:
    """Return the contract's object of `status` for a deployment.

    `health` is `healthy`, `attention` or `down`; `attention` lists what needs an operator.
    Raises CdcError if the deployment cannot be reached.
    """
    with explained(lake.name, "read the progress of"):
        is_paused = lake.control.read(PAUSE) is not None
        progress = Progress.load(lake.control)
        tables = _tables(lake, progress)
        records = failed_records(lake)
    runs = failed_runs(lake)
    components = [_stream(lake, is_paused=is_paused), *_connectors(lake)]
    alarms = _alarms(lake.deployment.prefix)
    attention = [_alarm_text(name) for name in alarms]
    attention += [f"{t['table']}: {t['last_error']}" for t in tables if t["last_error"]]
    attention += [_run_text(name, run) for name, run in runs.items()]
    attention += [_records_text(folder) for folder in records]
    down = [part["name"] for part in components if part["state"] not in _WANTED]
    health = "down" if down else "attention" if attention else "healthy"
    return {
        "ok": health == "healthy",
        "health": health,
        "down": down,
        "paused": is_paused,
        "attention": [*(f"{name} does not run" for name in down), *attention],
        "components": components,
        "tables": tables,
        "slot": _slot(lake),
        "lag_events": _lag(lake.deployment.prefix),
        "freshness_s": _freshness(progress),
        "alarms": alarms,
        "failed_runs": [*runs],
        "failed_records": records,
    }


def _stream(lake: DeployedLake, *, is_paused: bool) -> dict[str, Any]:
    with explained(lake.name, "list the runs of"):
        runs = boto3.client("glue").get_job_runs(JobName=lake.name, MaxResults=1)["JobRuns"]
    state = runs[0]["JobRunState"] if runs else "never started"
    waits = lake.deployment.plan.mode == "scheduled" and state in ("SUCCEEDED", "never started")
    if state in _RUNNING:
        shown = "running"
    elif lake.deployment.aws.stream == "off":
        shown = "off"
    elif is_paused:
        shown = "paused"
    else:
        shown = "scheduled" if waits else state.lower()
    return {
        "name": naming.STREAM_COMPONENT,
        **_OF_A_PROCESS,
        "state": shown,
        "run": runs[0]["Id"] if runs else None,
        "log": f"/aws-glue/jobs/{lake.deployment.prefix}/{naming.STREAM_JOB}",
    }


def _connectors(lake: DeployedLake) -> list[dict[str, Any]]:
    """Return the state of the Debezium connector, and that of each declared one."""
    prefix = lake.deployment.prefix
    named = {
        connector_log(connector.name): naming.declared_connector_name(prefix, connector.name)
        for connector in lake.deployment.sinks
    }
    if lake.deployment.aws.connector == "on":
        named = {"connect": naming.connector_name(prefix), **named}
    return [_connector(prefix, component, name) for component, name in named.items()]


def _connector(prefix: str, component: str, name: str) -> dict[str, Any]:
    with explained(name, "describe the connector"):
        found = find_connector(boto3.client("kafkaconnect"), name)
    state = found["connectorState"].lower() if found else "missing"
    log = f"/aws/vendedlogs/{prefix}/{component}"
    return {"name": component, **_OF_A_PROCESS, "state": state, "log": log}


def _tables(lake: DeployedLake, progress: Progress) -> list[dict[str, Any]]:
    plan, verified = lake.plan, read_verified(lake.control)
    names = [name for table in plan.all_tables for name in (table.name, table.changes)]
    names.append(naming.QUARANTINE)
    with ThreadPoolExecutor(_THREADS) as pool:
        read = dict(zip(names, pool.map(partial(_loaded, lake.catalog), names), strict=True))
    held = held_events(lake, read[naming.QUARANTINE])
    return [
        {
            **_figures(table, progress),
            **held[table.name],
            **_polls(lake, table),
            "changes_rows": _rows(read[table.changes]),
            "state_rows": _rows(read[table.name]),
            "files": _files([read[name] for name in table.stored]),
            "last_verified": asdict(verified[table.name]) if table.name in verified else None,
        }
        for table in plan.all_tables
    ]


def _polls(lake: DeployedLake, table: Table) -> dict[str, Any]:
    if table.polling is None:
        return {}
    control = lake.control
    return poll_figures(read_poll(control, table), read_poll_error(control, table), time.time())


def _figures(table: Table, progress: Progress) -> dict[str, Any]:
    place, now = progress.tables.get(table.name, TableProgress()), time.time()
    fresh = progress.freshness_s(table.name, now) if table.delivery == "stream" else None
    return {
        "table": table.name,
        "source": table.source,
        "delivery": table.delivery,
        "topic": None if table.polling else table.topic,
        "live_rows": None,  # needs a query: `cdclake sql --target aws`
        "incomplete": None,  # needs one, too: the saved query lists them
        **dict.fromkeys(("lag_events", "end_offset", "unapplied_rows")),
        "freshness_s": None if fresh is None else round(max(0.0, fresh), 1),
        **dict.fromkeys(("freshness_p50_s", "freshness_p95_s")),  # read from the changelog's rows
        "state_age_s": place.state_age_s(now),
        "state": _state(place.life),
        "last_error": place.last_error,
    }


def _state(life: Streaming | Held | Stopped | Resuming) -> str:
    return "streaming" if isinstance(life, Streaming) else "stopped"


def _loaded(catalog: Catalog, name: str) -> CatalogTable | None:
    """Return the table, None if it does not exist yet."""
    try:
        return catalog.load(name)
    except InputError:
        return None


def _rows(table: CatalogTable | None) -> int | None:
    """Return the rows by the metadata, those of data files without those deleted by position."""
    if table is None:
        return None
    return 0 if table.current is None else table.current.rows - table.current.position_deletes


def _files(tables: Sequence[CatalogTable | None]) -> int | None:
    """Return the number of data files; None if a table does not exist yet."""
    made = [table.current for table in tables if table is not None]
    if len(made) < len(tables):
        return None
    return sum(current.data_files for current in made if current is not None)


def _alarms(prefix: str) -> list[str]:
    """Return the names of the deployment's alarms that are on, without its prefix.

    Alarms of another deployment may begin with this prefix, but they notify another topic.
    """
    topic = f":{metrics.alarm_topic_name(prefix)}"
    with explained(prefix, "list the alarms of"):
        pages = boto3.client("cloudwatch").get_paginator("describe_alarms")
        found = [
            alarm["AlarmName"].removeprefix(f"{prefix}-")
            for page in pages.paginate(AlarmNamePrefix=f"{prefix}-", StateValue="ALARM")
            for alarm in page["MetricAlarms"]
            if any(action.endswith(topic) for action in alarm.get("AlarmActions", ()))
        ]
    return sorted(found)


def _alarm_text(alarm: str) -> str:
    """Return the line for an alarm that is on; those of the user's stacks have no runbook."""
    found = alarm_runbook(alarm)
    where = f"`{naming.runbook_command(found)}`" if found else "its description in CloudWatch"
    return f"alarm {alarm} is on: see {where}"


def _run_text(name: str, run: FailedRun) -> str:
    since = run.started_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    logs = f"cdclake logs {run.job} --since {since} --target aws"
    return f"the scheduled job {name} ended as {run.state}; `{logs}` shows why"


def _records_text(folder: str) -> str:
    see = f"`{naming.runbook_command('redrive')}`"
    return f"records that Firehose could not deliver are in {folder} and perhaps later: see {see}"


def _lag(prefix: str) -> float | None:
    dimensions = [{"Name": metrics.DEPLOYMENT, "Value": prefix}]
    return _datapoint(metrics.NAMESPACE, metrics.LAG.name, dimensions, _OWN_RECENT)


def _freshness(progress: Progress) -> float | None:
    """Return the age of the newest heartbeat in the lake, also while no stream publishes it."""
    if not progress.heartbeat_committed_us:
        return None
    return round(max(0.0, time.time() - progress.heartbeat_committed_us / 1e6), 1)


def _slot(lake: DeployedLake) -> dict[str, Any] | None:
    """Return the WAL that the slot retains, by RDS's metric of a created server.

    Aurora has no limit, and its metric is the WAL on disk: -1 while no slot needs WAL.
    """
    created = lake.deployment.aws.source.create
    if created is None:
        return None
    known = source_dimensions(lake.deployment.prefix, created)
    dimensions = [{"Name": name, "Value": value} for name, value in known.items()]
    is_aurora = created.engine == "aurora"
    retained = _datapoint("AWS/RDS", WAL_ON_DISK if is_aurora else LOGICAL_LAG, dimensions)
    return {
        "wal_bytes": None if retained is None or retained < 0 else int(retained),
        "limit_bytes": None if is_aurora else created.slot_wal_gb * 1024**3,
    }


def _datapoint(
    namespace: str, name: str, dimensions: Sequence[dict[str, str]], recent: timedelta = _RECENT
) -> float | None:
    now = datetime.now(UTC)
    with explained(name, "read the metric"):
        found = boto3.client("cloudwatch").get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            Dimensions=list(dimensions),
            StartTime=now - recent,
            EndTime=now,
            Period=60,
            Statistics=["Maximum"],
        )["Datapoints"]
    newest = max(found, key=itemgetter("Timestamp"), default=None)
    return None if newest is None else float(newest["Maximum"])
