"""Control objects that each deployed job writes and deletes; every job reads all of them.

On AWS a job's role allows nothing else, so that no job can forge what another one acts on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdclake import naming
from cdclake.control_objects import (
    DERIVED,
    ERASED,
    ERASURES,
    FORGET,
    LATE,
    LEASES,
    NEW_COLUMNS,
    OUTCOMES,
    POLLS,
    PROBES,
    PROGRESS,
    PUBLISHED,
    REQUESTS,
    RESUMES,
    VERIFIED,
    WIDENED,
    WIDENED_CHANGELOGS,
)
from cdclake.deployed_jobs import TABLE_JOBS

_LEASES, _REPORTS = f"{LEASES}/*", f"{naming.REPORTS}/*"
_PROBED = f"{PROBES}/*"
_REQUESTS, _RESUMES = f"{REQUESTS}/*", f"{RESUMES}/*"
_FORGETS = f"{REQUESTS}/*.{FORGET}.json"
_ERASED, _LATE = f"{ERASED}/*", f"{LATE}/*"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlAccess:
    """Names of control objects, with `*` for any text."""

    writes: tuple[str, ...]
    deletes: tuple[str, ...] = ()


CONTROL_ACCESS: Mapping[str, ControlAccess] = {
    naming.STREAM_JOB: ControlAccess(
        writes=(
            PROGRESS,
            PUBLISHED,
            WIDENED_CHANGELOGS,
            _LEASES,
            _REQUESTS,
            _ERASED,
            f"{OUTCOMES}/*",
        ),
        deletes=(_LEASES, _REQUESTS, _RESUMES),
    ),
    **dict.fromkeys(TABLE_JOBS, ControlAccess(writes=(_LEASES, _REPORTS), deletes=(_LEASES,))),
    naming.APPLY_JOB: ControlAccess(
        writes=(_LEASES, _REPORTS, _LATE, _ERASED, f"{OUTCOMES}/*.{FORGET}.json"),
        deletes=(_LEASES, _LATE, _FORGETS),
    ),
    naming.REBUILD_JOB: ControlAccess(writes=(_LEASES, _REPORTS, _LATE), deletes=(_LEASES, _LATE)),
    naming.REFRESH_JOB: ControlAccess(
        writes=(_LEASES, _REPORTS, f"{DERIVED}/*"), deletes=(_LEASES,)
    ),
    naming.POLL_JOB: ControlAccess(
        writes=(_LEASES, _REPORTS, f"{POLLS}/*", _ERASED, f"{OUTCOMES}/*.{FORGET}.json"),
        deletes=(_LEASES, f"{POLLS}/*", _FORGETS),
    ),
    naming.CHECK_JOB: ControlAccess(writes=(_REPORTS,)),
    # It notes widened types and new columns, and requests the replay of what they quarantined.
    naming.VERIFY_JOB: ControlAccess(
        writes=(_REPORTS, VERIFIED, WIDENED, NEW_COLUMNS, _RESUMES, f"{REQUESTS}/*.replay.json")
    ),
    naming.OPERATE_JOB: ControlAccess(writes=(_REPORTS, naming.RELATIONS, _RESUMES, _REQUESTS)),
    # It ends the stream, whose keeper starts it again.
    naming.FORGET_JOB: ControlAccess(
        writes=(_REPORTS, _FORGETS, f"{ERASURES}/*", naming.STREAM_ORDER)
    ),
    naming.LOAD_JOB: ControlAccess(
        writes=(PROGRESS, _LEASES, _REPORTS, f"{naming.LOADS}/*"), deletes=(_LEASES,)
    ),
    naming.PROBE_JOB: ControlAccess(writes=(_PROBED, _REPORTS), deletes=(_PROBED,)),
}
