"""Erasure of a table's rows, on request, by a table job that holds the lease of its state."""

from __future__ import annotations

import logging
from collections.abc import Callable
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
from cdclake.jobs.control.requests import remove_request
from cdclake.jobs.operations.erasure import Json, TableErasure
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Table

_AFTER_ALL = "~"  # greater than every position, whose first digit is hexadecimal

log = logging.getLogger("cdclake.erasure")

Choose = Callable[[ForgetRequest], ErasedKeys | None]


def answer_request(job: TableJob, table: Table, keys: Choose) -> None:
    """Erase the rows that a request names, if there is one, and write its outcome.

    `keys` returns the keys to erase, and the position below which their events are erased; None
    leaves the request to a later run.
    """
    stored = job.control.read(request_name(table.name, FORGET))
    if stored is None:
        return
    request = ForgetRequest.from_json(stored.content)
    erased = keys(request)
    if erased is None:
        log.info("%s of %s: postponed to a later run", FORGET, table.name)
        return
    try:
        result = erase_table_rows(job, table, erased)
    except Exception as error:  # the outcome carries it
        log.exception("%s of %s failed", FORGET, table.name)
        result = failed_result(error)
    outcome = outcome_content(request.id, result)
    job.control.write(outcome_name(table.name, FORGET), outcome)
    remove_request(job.control, table.name, FORGET, request.id)


def erase_table_rows(
    job: TableJob, table: Table, erased: ErasedKeys, *, keeps_files: bool = True
) -> Json:
    """Erase the rows of these keys, and return how many there were."""
    erasure = TableErasure(
        lake=job.lake,
        plan=job.plan,
        table=table,
        erased=erased,
        control=job.control,
        leases=job.leases,
        keeps_files=keeps_files,
    )
    with ExitStack() as held:
        for name in erasure.others:
            held.enter_context(job.leases.hold(name))
        counts, _ = erasure.run()
        return counts


def at_every_position(request: ForgetRequest, table: Table, salt: str) -> ErasedKeys:
    """Return the keys of a request for a polled table, erased at every position.

    No poll is in flight while the lease is held, and a later one reads a source without the rows.
    New stamps make the next poll read all rows, so a row that was inserted again comes back.
    """
    positions = dict.fromkeys(request.hashes, _AFTER_ALL)
    return ErasedKeys(KeyHash.of(table.name, salt), positions)
