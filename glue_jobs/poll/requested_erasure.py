"""Erasure of a polled table's rows, on request, by the poll that holds the table's lease.

No poll is in flight then, and a later one reads a source without the rows: whatever the lake has of
their keys is erased, at every position. New stamps make the next poll read all rows, so a row that
was inserted again meanwhile comes back.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import replace

from cdclake.control_objects import (
    FORGET,
    ForgetRequest,
    failed_result,
    outcome_content,
    outcome_name,
    request_name,
)
from cdclake.erasures import ErasedKeys, KeyHash
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, moment_after
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.operations.erasure import Json, TableErasure, derived_of
from cdclake.jobs.stream.append import commit_files
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Table

_AFTER_ALL = "~"  # greater than every position, whose first digit is hexadecimal

log = logging.getLogger("cdclake.poll")


def answer_request(job: TableJob, table: Table, salt: str) -> None:
    """Erase the rows that a request names, if there is one, and write its outcome."""
    stored = job.control.read(request_name(table.name, FORGET))
    if stored is None:
        return
    request = ForgetRequest.from_json(stored.content)
    try:
        result = _erase(job, table, request, salt)
    except Exception as error:  # the outcome carries it
        log.exception("%s of %s failed", FORGET, table.name)
        result = failed_result(error)
    outcome = outcome_content(request.id, result)
    job.control.write(outcome_name(table.name, FORGET), outcome)
    job.control.delete(request_name(table.name, FORGET))


def _erase(job: TableJob, table: Table, request: ForgetRequest, salt: str) -> Json:
    positions = dict.fromkeys(request.hashes, _AFTER_ALL)
    erasure = TableErasure(
        lake=job.lake,
        plan=job.plan,
        table=table,
        erased=ErasedKeys(KeyHash.of(table.name, salt), positions),
        renew_stamps=lambda: _renew_stamps(job, table),
        derived=derived_of(job.plan, table, job.control),
    )
    with ExitStack() as held:
        for name in erasure.others:
            held.enter_context(job.leases.hold(name))
        counts, _ = erasure.run()
        return counts


def _renew_stamps(job: TableJob, table: Table) -> None:
    """Commit the stamps of changelog and state again: no older snapshot is needed for them."""
    changelog = TableHandle(job.lake, table.changes)
    stamped = changelog.stamped()
    if stamped.stamp is not None:
        stamp = ChangesStamp.from_json(stamped.stamp)
        commit_files(
            [],
            changelog,
            read_from=stamped.snapshot_id,
            follows=stamp.ingested_through,
            stamp=replace(stamp, ingested_through=moment_after(stamp)),
        )
    update = StateUpdate(job.lake, table, changelog=changelog)
    if job.lake.stamped(table.name).stamp is not None:
        update.commit_stamp(update.applied())
