"""Checks of what a running lake has in its source: the slot that it reads, and its publication."""

from __future__ import annotations

from collections.abc import Iterator

from cdclake.check import Check, failed, passed, warned
from cdclake.jobs.runtime.source import connect
from cdclake.plan import Plan
from cdclake.postgres.prepare import PublicationState
from cdclake.postgres.server import ServerState, settings_warnings
from cdclake.postgres.source import read_publication, read_server

_AGAIN = "run `cdclake up` again"


def check_stream(dsn: str, plan: Plan) -> Iterator[Check]:
    """Check slot and publication; nothing of a lake whose tables are all polled."""
    if not plan.tables:
        return
    with connect(dsn) as connection:
        server = read_server(connection, plan.source_object)
        publication = read_publication(connection, plan.source_object)
    yield check_slot(server, plan.source_object)
    yield check_wal_limit(server)
    yield check_publication(publication, plan)


def check_slot(server: ServerState, name: str) -> Check:
    """Check that the slot exists, has its WAL, and is read."""
    if not server.slot_exists:
        return failed("slot", f"the slot {name} does not exist", _AGAIN)
    if server.slot_loss:
        told = f"the slot {name} {server.slot_loss}"
        return failed("slot", told, f"{_AGAIN}, which reads every table again")
    if not server.slot_active:
        told = f"nothing reads the slot {name}, which retains WAL"
        return warned("slot", told, f"see `cdclake status`, and {_AGAIN}")
    return passed("slot", f"{name} is read")


def check_wal_limit(server: ServerState) -> Check:
    """Check that a slot may retain a limited amount of WAL only."""
    for warning in settings_warnings(server):
        return warned("wal", str(warning), warning.remedy)
    return passed("wal", f"a slot retains at most {server.slot_wal_mb} MB")


def check_publication(publication: PublicationState, plan: Plan) -> Check:
    """Check that the publication exists and sends all changes of the plan's tables."""
    if not publication.exists:
        return failed("publication", f"{plan.source_object} does not exist", _AGAIN)
    lacking = [table for table in plan.tables if publication.lacks(table)]
    if lacking:
        told = f"it does not send all changes of {', '.join(table.source for table in lacking)}"
        delivered = ", ".join(table.source for table in lacking if table.delivery == "firehose")
        others = f"; for {delivered} do what `cdclake status` then shows" if delivered else ""
        return failed("publication", told, f"{_AGAIN}, which reads the stream's tables{others}")
    return passed("publication", f"{plan.source_object} has all tables")
