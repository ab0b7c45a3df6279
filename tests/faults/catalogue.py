"""All faults that the campaign injects, and those of the matrix that it cannot."""

from __future__ import annotations

from tests.faults.data_faults import DATA_FAULTS
from tests.faults.process_faults import PROCESS_FAULTS
from tests.faults.storage_faults import STORAGE_FAULTS

FAULTS = (*PROCESS_FAULTS, *STORAGE_FAULTS, *DATA_FAULTS)
GROUPS = tuple(dict.fromkeys(fault.group for fault in FAULTS))

# Faults of the matrix F1-F40 that are not injected here, each with the reason.
ELSEWHERE = {
    "F8": "the local lake has one Connect worker; two would need a second worker's configuration",
    "F12": "a failover needs a second PostgreSQL; slot.failover is tested without one",
    "F13": "a restore to an earlier point is the runbook restore.md, which is not automated",
    "F23": "S3 has been strongly consistent since December 2020",
    "F37": "ordering does not use clocks; tests/spark checks events whose times go backwards",
}
