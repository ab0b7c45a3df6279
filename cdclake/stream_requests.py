"""Requests to the stream that a check of the source makes as well: to resume, and to replay."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any, Protocol

from cdclake.control_objects import (
    REPLAY,
    ReplayRequest,
    ResumeRequest,
    request_name,
    resume_name,
)
from cdclake.control_reader import StoredObject


class ControlStore(Protocol):
    """Store of the control objects: that of the jobs, or that of a Lambda function."""

    def read(self, name: str) -> StoredObject | None:
        """Return the object, or None if there is none."""
        ...

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Put the object unconditionally."""
        ...


def request_replay(control: ControlStore, table: str) -> str:
    """Request a replay of the table's quarantined events; return the request's id.

    A pending request keeps its id. If the stream is carrying it out already, it does so again: its
    plan may be an earlier one.
    """
    stored = control.read(request_name(table, REPLAY))
    if stored is None:
        request = ReplayRequest(uuid.uuid4().hex)
    else:
        pending = ReplayRequest.from_json(stored.content)
        request = replace(pending, repeated=pending.repeated + 1)
    control.write(request_name(table, REPLAY), request.to_json())
    return request.id


def request_resume(
    control: ControlStore,
    table: str,
    *,
    skip_gap: bool = False,
    columns_changed: bool = False,
    has_snapshot: bool = False,
) -> None:
    """Request that a stopped table reads its gap and rejoins.

    A pending request, which a resync may wait for, keeps its permission to skip the gap.

    Args:
        control: The control objects.
        table: Lake name of the table.
        skip_gap: Continue with the oldest event that Kafka still has; a resync reads the rest.
        columns_changed: Resume the table only if declared columns or refused events stopped it.
        has_snapshot: A new epoch's snapshot replaces the rows of the skipped gap; no resync has to.
    """
    request = ResumeRequest(
        skip_gap=skip_gap, columns_changed=columns_changed, has_snapshot=has_snapshot
    )
    if (stored := control.read(resume_name(table))) is not None:
        pending = ResumeRequest.from_json(stored.content)
        request = ResumeRequest(
            skip_gap=request.skip_gap or pending.skip_gap,
            columns_changed=request.columns_changed and pending.columns_changed,
            has_snapshot=request.has_snapshot or pending.has_snapshot,
        )
    control.write(resume_name(table), request.to_json())
