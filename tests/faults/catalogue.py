"""All faults that the campaign injects, and those of the matrix that it cannot."""

from __future__ import annotations

from tests.faults.data_faults import DATA_FAULTS
from tests.faults.process_faults import PROCESS_FAULTS
from tests.faults.storage_faults import STORAGE_FAULTS

FAULTS = (*PROCESS_FAULTS, *STORAGE_FAULTS, *DATA_FAULTS)
GROUPS = tuple(dict.fromkeys(fault.group for fault in FAULTS))

_LOST = "tests/local/test_lost_kafka.py, without concurrent writers: "
# Faults of the matrix F1-F40 that are not injected here, each with the reason or its tests.
ELSEWHERE = {
    "F8": "the local lake has one Connect worker; two would need a second worker's configuration",
    "F12": "a failover needs a second PostgreSQL; slot.failover is tested without one",
    "F13": "a restore to an earlier point is the runbook restore.md, which is not automated",
    "F14": "tests/local/test_epochs.py drops the slot, which takes an `up` to repair; no test has"
    " a slot that PostgreSQL invalidated, tests/unit/local/test_doctor.py only its status `lost`",
    "F23": "S3 has been strongly consistent since December 2020",
    "F31": f"{_LOST}files of the checkpoint are cut or emptied",
    "F33": "tests/local/test_oversized_records.py, without concurrent writers: a resync repairs it",
    "F35": f"{_LOST}a topic is created again; no test adds partitions to the topic of a running"
    " stream, tests/unit/jobs/test_topic_state.py compares the progress with a topic that has more",
    "F36": f"{_LOST}records expire before they are read, and the tables need a resync",
    "F37": "ordering does not use clocks; tests/spark checks events whose times go backwards",
}
