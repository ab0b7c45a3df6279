"""Bulk load at the start of an epoch, and its handover to the connector.

The job creates the slot. As soon as it has reported the slot's LSN, the connector starts there, so
that changes written meanwhile are kept in Kafka rather than in the source's WAL. The stream starts
after the load.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace

import psycopg

from cdclake import naming
from cdclake.activity import step
from cdclake.debezium.connector import SourceAddress
from cdclake.errors import ComponentFailed
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.spark_jobs import STREAM, RunningJob, start_job
from cdclake.local.process.orphan_processes import kill_orphans
from cdclake.local.process.supervisor_client import log_tail

_POLL_S = 0.3
_SLOT_FREE_TIMEOUT_S = 30.0


def end_epoch(lake: LocalLake) -> None:
    """Drop the slot of a finished epoch, and end its load job if that is still running.

    Call it while the connector is stopped; the next epoch creates its own slot.
    """
    kill_orphans(lake.home.path, naming.LOAD_JOB)
    deadline = time.monotonic() + _SLOT_FREE_TIMEOUT_S
    with psycopg.connect(lake.dsn, autocommit=True) as connection:
        while _slot_exists(connection, lake.plan.source_object):
            try:
                connection.execute(
                    "SELECT pg_drop_replication_slot(%s)", (lake.plan.source_object,)
                )
            except psycopg.errors.ObjectInUse:  # its reader has not disconnected yet
                if time.monotonic() > deadline:
                    raise ComponentFailed(
                        f"the replication slot {lake.plan.source_object} is still in use",
                        "stop the client that streams from it, then run `cdclake up` again",
                        component="postgres",
                    ) from None
                time.sleep(_POLL_S)


def _slot_exists(connection: psycopg.Connection[tuple[object, ...]], slot: str) -> bool:
    found = connection.execute("SELECT FROM pg_replication_slots WHERE slot_name = %s", (slot,))
    return found.fetchone() is not None


def load_and_hand_over(
    lake: LocalLake, connector: ConnectorClient, config: dict[str, str], address: SourceAddress
) -> None:
    """Load every table as of one LSN, and start the connector at that LSN.

    Raises:
        ComponentFailed: if the load fails. The epoch cannot be continued then; call `end_epoch`
            before the next one.
    """
    stack.stop_component(lake.home, STREAM)
    secrets = lake.home.secrets_file
    own = replace(address, password=f"${{file:{secrets}:replication_password}}")
    job = start_job(
        lake,
        naming.LOAD_JOB,
        {
            "epoch": str(lake.state.epoch),
            "slot": lake.plan.source_object,
            "source": json.dumps(asdict(own)),
            "mask_salt": f"${{file:{secrets}:mask_salt}}",
        },
    )
    try:
        with step("load the tables in bulk") as shown:
            connector.begin_at(config, _first_lsn(lake, job))
            connector.start(config)
            job.wait(shown)
    finally:
        job.process.kill()
        job.process.wait()
    failed = [line for line in job.report()["tables"] if line["error"]]
    if failed:
        log = lake.home.log(naming.LOAD_JOB)
        raise ComponentFailed(
            f"the bulk load failed: {failed[0]['error']}",
            f"read its log {log}, then run `cdclake up` again",
            naming.LOAD_JOB,
            log_tail(log),
        )


def _first_lsn(lake: LocalLake, job: RunningJob) -> int:
    """Wait for the job to report the slot's LSN; raise ComponentFailed if it ends before."""
    while True:
        ended = job.process.poll() is not None
        started = lake.control.read(naming.load_start(lake.state.epoch))
        if started is not None:
            return int(started.content["lsn"])
        if ended:
            job.report()
        time.sleep(_POLL_S)
