"""`verify` of a running lake."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cdclake.errors import CdcError
from cdclake.jobs.control.last_verified import note_verified
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.reader.quarantine_counts import quarantined_events
from cdclake.jobs.verify.catch_up import CatchUp
from cdclake.jobs.verify.compared_rows import LakeEngine
from cdclake.jobs.verify.poll_wait import with_polls
from cdclake.jobs.verify.report import Report
from cdclake.jobs.verify.run import verify_tables
from cdclake.local.lake.delivered_offsets import arrived_offsets
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.topics import end_offsets
from cdclake.local.lake.widened_columns import follow_source
from cdclake.local.operations_backend import LocalBackend
from cdclake.local.polls import poll_now
from cdclake.local.reader.duck import lake_reader
from cdclake.plan import Plan


def verify_lake(
    lake: LocalLake,
    wait_s: float = 120.0,
    table: str | None = None,
    sample: int | None = None,
    *,
    deep: bool = False,
    engine_of: Callable[[Plan], LakeEngine] | None = None,
) -> Report:
    """Compare the lake's tables, or only `table`, with the source.

    `engine_of` returns the engine whose rows are compared, by the plan with the types that the
    source has widened; without it that is DuckDB.
    """
    if not lake.plan.all_tables and table is None:
        return Report(tables=[], sample=sample, rounds=0, seconds=0.0)
    lake = follow_source(lake)
    control, reader = lake.control, lake_reader(lake)
    report = verify_tables(
        lake.plan,
        lake.plan.all_tables if table is None else (lake.plan.table(table),),
        dsn=lake.dsn,
        salt=lake.mask_salt,
        reader=reader,
        wait=with_polls(_arrival(lake, wait_s).wait, partial(poll_now, lake)),
        sample=sample,
        deep=deep,
        quarantined=partial(quarantined_events, reader),
        engine=None if engine_of is None else engine_of(lake.plan),
    )
    if engine_of is None:
        note_verified(control, report.verdicts())
    return report


def _arrival(lake: LocalLake, wait_s: float) -> CatchUp:
    control = lake.control
    return CatchUp(
        plan=lake.plan,
        dsn=lake.dsn,
        ends=partial(end_offsets, lake.kafka),
        progress=lambda: Progress.load(control),
        arrived=partial(arrived_offsets, lake.kafka, lake.plan),
        epoch=lake.state.epoch,
        wait_s=wait_s,
        obstacle=partial(_obstacle, lake),
    )


def _obstacle(lake: LocalLake) -> CdcError | None:
    """Return the reason why no change arrives: a pause, a dead component, a failed connector."""
    backend = LocalBackend(lake)
    try:
        backend.check_running()
        backend.check_health()
    except CdcError as error:
        return error
    return None
