"""Changes that Firehose delivers, applied to a state; those of erased keys are erased first.

Firehose's function drops events of erased keys, but an event that it had decoded before may arrive
later. Each run looks for such events among the rows that it is about to apply, all rows in a
rebuild, and erases them first: once the state's stamp has passed them, no later run would look at
them. They leave the changelog before files, snapshots and derived tables, so a note outlives a run
that dies in between: the next one erases again.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.control_objects import ForgetRequest, late_name
from cdclake.debezium.worker import SALT_KEY
from cdclake.erasure_register import ErasureRegister
from cdclake.erasures import ErasedKeys
from cdclake.errors import TableError
from cdclake.firehose.redrive_stream import lateness_seconds
from cdclake.jobs.apply.declared_columns import check_declaration
from cdclake.jobs.apply.firehose_changelog import apply_log, delivered_floor
from cdclake.jobs.apply.rebuilt_state import Check, rebuild_state
from cdclake.jobs.operations.erased_records import erased_among
from cdclake.jobs.operations.requested_erasure import answer_request, erase_table_rows
from cdclake.jobs.runtime.secrets import secret_value
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Table

_MAX_ERASURES = 5

log = logging.getLogger("cdclake.erasure")


def apply_delivered(job: TableJob, table: Table) -> int:
    """Apply the changes that have arrived; return their number.

    First erase what a due request names, and each time that events of erased keys have arrived,
    these. The caller holds the lease of the state. Raises InputError if the salt has changed.
    """
    erased = _erased_keys(job, table)
    answer_request(job, table, partial(_due, erased))
    floor = _floor(job, table)
    return _without_erased(job, table, erased, partial(apply_log, job.lake, table, floor=floor))


def rebuild_delivered(job: TableJob, table: Table) -> int:
    """Rebuild the table's state from its changelog; return the number of rows.

    First erase events of erased keys. The caller holds the lease of the state. Raises InputError
    if the salt has changed.
    """
    erased = _erased_keys(job, table)
    # A state that was gone no longer has the floor in its stamp.
    floor = _floor(job, table)
    return _without_erased(job, table, erased, partial(rebuild_state, job.lake, table, floor=floor))


def _floor(job: TableJob, table: Table) -> str:
    given = job.arguments.get("delivery_seconds")
    delivery_s = lateness_seconds(job.plan, table) if given is None else float(given)
    return delivered_floor(job.lake, job.control, job.plan, table, delivery_s)


class _Work(Protocol):
    def __call__(self, *, check: Check) -> int: ...


def _without_erased(job: TableJob, table: Table, erased: ErasedKeys | None, work: _Work) -> int:
    """Do the work on rows without those of erased keys, which are erased first."""

    def check(rows: DataFrame) -> None:
        check_declaration(job.lake, table)
        if erased is not None:
            _check_arrived(table, erased, rows)

    if erased is None:
        return work(check=check)
    if job.control.read(late_name(table.name)) is not None:
        _erase_late(job, table, erased)
    for _ in range(_MAX_ERASURES):
        try:
            return work(check=check)
        except _ErasedArrived:
            _erase_late(job, table, erased)
    raise TableError(
        table.name,
        f"events of erased keys arrived during {_MAX_ERASURES} erasures, one after the other",
        "run the job again when Firehose has delivered what it held back",
    )


class _ErasedArrived(Exception):
    pass


def _erase_late(job: TableJob, table: Table, erased: ErasedKeys) -> None:
    """Erase events that arrived late, at once: no command waits to delete their files."""
    note = late_name(table.name)
    job.control.write(note, {})
    found = erase_table_rows(job, table, erased, keeps_files=False)
    job.control.delete(note)
    log.warning("%s: %d events of erased keys arrived late", table.name, found["events"])


def _check_arrived(table: Table, erased: ErasedKeys, rows: DataFrame) -> None:
    """Raise _ErasedArrived if events of erased keys are among the rows, which may be applied."""
    older = rows.where(F.col(naming.POSITION) < erased.newest)
    if not erased_among(older, table, erased).isEmpty():
        raise _ErasedArrived


def _erased_keys(job: TableJob, table: Table) -> ErasedKeys | None:
    def salt() -> str:
        return secret_value(job.arguments["mask_salt"], SALT_KEY)

    return ErasureRegister(job.control, salt).of(table.name)


def _due(erased: ErasedKeys | None, request: ForgetRequest) -> ErasedKeys | None:
    """Return the keys to erase; None until they are registered, and Firehose has delivered."""
    is_registered = erased is not None and request.is_registered(erased.positions)
    return erased if is_registered and request.not_before <= time.time() else None
