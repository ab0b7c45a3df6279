"""Operations of the local lake on the source database: prepare, measure the slot, clean up."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from cdclake.errors import InputError
from cdclake.jobs.runtime.source import Connection, connect
from cdclake.plan import Plan
from cdclake.postgres import queries
from cdclake.postgres.server import failover_problem
from cdclake.postgres.source import (
    Prepared,
    check_session,
    leave_session,
    prepare_session,
)


class SlotWal(NamedTuple):
    """Bytes of WAL at a replication slot, and the server's position in the WAL."""

    retained: int
    limit: int | None  # None: the slot may retain any amount
    position: int
    unconfirmed: int  # the connector has not confirmed them yet


def prepare_source(
    dsn: str,
    plan: Plan,
    *,
    embedded: bool,
    role_password: str,
    own_stream: bool = False,
    kept: Collection[str] = (),
) -> Prepared:
    """Run `prepare_session` on a new connection."""
    with connect(dsn) as connection:
        return prepare_session(
            connection,
            plan,
            embedded=embedded,
            role_password=role_password,
            own_stream=own_stream,
            kept=kept,
        )


def check_source(dsn: str, plan: Plan | None, *, keeping: str = "") -> None:
    """Raise InputError if the source does not answer, or if it cannot stream the plan.

    `keeping` is another remedy for a source that does not answer.
    """
    try:
        with connect(dsn) as connection:
            if plan is not None:
                check_session(connection, plan, embedded=False, own_stream=False)
    except InputError as error:
        if not keeping:
            raise
        raise InputError(error.message, f"{error.remedy}; or {keeping}") from None


def remove_from_source(dsn: str, plan: Plan) -> list[str]:
    """Run `leave_session` on a new connection, and return what is gone."""
    name, before = plan.source_object, []
    with connect(dsn) as connection:
        before = _ours(connection, name)
        leave_session(connection, plan)
        return [each for each in before if each not in _ours(connection, name)]


def _ours(connection: Connection, name: str) -> list[str]:
    return [str(row[0]) for row in connection.execute(queries.OUR_OBJECTS, {"name": name})]


def slot_failover(dsn: str, slot: str) -> tuple[bool | None, str | None]:
    """Return whether standbys may copy the slot (None: unknown to the server), and the problem."""
    with connect(dsn) as connection:
        row = connection.execute(queries.SLOT_FAILOVER, (slot,)).fetchone()
        assert row is not None
        failover, standbys, synchronized = row
        problem = failover_problem(failover, standbys, synchronized)
        return failover, problem.replace("<slot>", slot) if problem else None


def slot_wal(dsn: str, slot: str) -> SlotWal:
    """Return what the slot retains; without a slot, that is 0 bytes."""
    with connect(dsn) as connection:
        row = connection.execute(queries.SLOT_WAL, (slot, slot)).fetchone()
        assert row is not None
        retained, limit, position, unconfirmed = row
        return SlotWal(
            retained=int(retained or 0),
            limit=None if limit is None else int(limit),
            position=int(position),
            unconfirmed=int(unconfirmed or 0),
        )
