"""Erasure of a polled table's rows, on request, by the poll that holds the table's lease.

No poll is in flight then, and a later one reads a source without the rows: whatever the lake has of
their keys is erased, at every position. New stamps make the next poll read all rows, so a row that
was inserted again meanwhile comes back.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack

from cdclake.control_objects import (
    FORGET,
    ForgetRequest,
    failed_result,
    outcome_content,
    outcome_name,
    request_name,
)
from cdclake.erasures import ErasedKeys, KeyHash
from cdclake.jobs.operations.erasure import Json, TableErasure, derived_of
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
        derived=derived_of(job.plan, table, job.control),
    )
    with ExitStack() as held:
        for name in erasure.others:
            held.enter_context(job.leases.hold(name))
        counts, _ = erasure.run()
        return counts
