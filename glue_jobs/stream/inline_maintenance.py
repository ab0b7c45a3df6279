"""Maintenance by the stream between two batches, unless another job holds the table."""

from __future__ import annotations

import logging
from collections.abc import Callable

from cdclake.errors import CommitConflict
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict

log = logging.getLogger("cdclake.stream")


def run_if_free(leases: Leases, name: str, work: Callable[[], None]) -> bool:
    """Do the work under the lease `name`; return whether it was done.

    It is not done if another job holds the lease or if its commits kept conflicting.
    """
    with leases.try_hold(name) as held:
        if held:
            try:
                retry_on_conflict(name, work)
            except CommitConflict as error:
                log.warning("%s", error)
                return False
        return held
