"""Changes that Firehose delivers, applied to a state; those of erased keys are erased first.

Firehose's function drops events of erased keys, but an event that it had decoded before may arrive
later. Each run looks for such events among those that have arrived, and erases them again before
it applies the others.
"""

from __future__ import annotations

import logging
from functools import partial

from pyspark.sql import functions as F

from cdclake import naming
from cdclake.control_objects import FORGET, ForgetRequest, request_name
from cdclake.debezium.worker import SALT_KEY
from cdclake.erasure_register import ErasureRegister
from cdclake.erasures import ErasedKeys
from cdclake.errors import InputError
from cdclake.jobs.apply.firehose_changelog import apply_log, arrived_rows, delivered_floor
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.operations.erased_records import erased_among
from cdclake.jobs.operations.requested_erasure import answer_request, erase_table_rows
from cdclake.jobs.runtime.secrets import secret_value
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Table

log = logging.getLogger("cdclake.erasure")


def apply_delivered(job: TableJob, table: Table) -> int:
    """Apply the changes that have arrived; return their number.

    First erase what a request names, or events of erased keys that have arrived since. The caller
    holds the lease of the state. Raises InputError if the salt has changed.
    """
    _erase(job, table)
    floor = delivered_floor(job.lake, job.control, job.plan, table)
    return apply_log(job.lake, table, floor=floor)


def _erase(job: TableJob, table: Table) -> None:
    erased = ErasureRegister(job.control, lambda: _salt(job)).of(table.name)
    if job.control.read(request_name(table.name, FORGET)) is not None:
        answer_request(job, table, partial(_registered, erased, table))
    elif erased is not None and has_erased_rows(job.lake, table, erased):
        # No command waits to delete the files.
        found = erase_table_rows(job, table, erased, keeps_files=False)
        log.warning("%s: %d events of erased keys arrived late", table.name, found["events"])


def has_erased_rows(lake: LakeTables, table: Table, erased: ErasedKeys) -> bool:
    """Return whether events of erased keys are among those that the state lacks."""
    rows = arrived_rows(lake, table)
    if rows is None:
        return False
    older = rows.where(F.col(naming.POSITION) < erased.newest)
    return not erased_among(older, table, erased).isEmpty()


def _salt(job: TableJob) -> str:
    return secret_value(job.arguments["mask_salt"], SALT_KEY)


def _registered(erased: ErasedKeys | None, table: Table, request: ForgetRequest) -> ErasedKeys:
    if erased is None or not erased.positions.keys() >= {*request.hashes}:
        raise InputError(
            f"the keys to erase from {table.name} are not in its register",
            "run `cdclake forget` again",
        )
    return erased
