"""Upkeep that a stream does between two batches, and leaves for later if somebody is at work."""

from __future__ import annotations

import logging
from collections.abc import Callable

from cdclake.errors import CommitConflict
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict

log = logging.getLogger("cdclake.stream")


def run_if_free(leases: Leases, name: str, work: Callable[[], None]) -> bool:
    """Do the work under the lease of that name; whether it was done.

    It was not if another job holds the lease, or if other writers were always quicker.
    """
    with leases.try_hold(name) as held:
        if held:
            try:
                retry_on_conflict(name, work)
            except CommitConflict as error:
                log.warning("%s", error)
                return False
        return held
