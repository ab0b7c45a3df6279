"""Operations of the local lake on the source database: prepare, measure the slot, clean up."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from psycopg import errors

from cdclake.jobs.runtime.source import Connection, connect
from cdclake.plan import Plan
from cdclake.postgres import queries
from cdclake.postgres.ownership import Owner
from cdclake.postgres.refusal import Refusal
from cdclake.postgres.server import ServerState, failover_problem
from cdclake.postgres.source import (
    Prepared,
    check_session,
    leave_session,
    prepare_session,
    read_server,
    refuse_another_owner,
)
from cdclake.postgres.source_warnings import source_warnings
from cdclake.postgres.teardown import drop_slot


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
    owner: Owner,
    role_password: str,
    kept: Collection[str] = (),
) -> Prepared:
    """Run `prepare_session` on a new connection."""
    with connect(dsn) as connection:
        return prepare_session(
            connection,
            plan,
            embedded=embedded,
            owner=owner,
            role_password=role_password,
            kept=kept,
        )


def server_of(dsn: str, plan: Plan) -> ServerState:
    """Read the state of the server, and of the plan's role and slot."""
    with connect(dsn) as connection:
        return read_server(connection, plan.source_object)


def check_source(dsn: str, plan: Plan | None, owner: Owner) -> None:
    """Raise InputError if the source does not answer, or if it cannot stream the plan."""
    with connect(dsn) as connection:
        if plan is not None:
            check_session(connection, plan, embedded=False, owner=owner)


def check_owner_in(dsn: str, plan: Plan, owner: Owner) -> None:
    """Raise InputError if the source does not answer, or has another lake's objects."""
    with connect(dsn) as connection:
        refuse_another_owner(connection, plan, owner)


def warnings_of(dsn: str, plan: Plan, *, embedded: bool) -> list[Refusal]:
    """Return the warnings about the source while it has the plan's slot."""
    with connect(dsn) as connection:
        return source_warnings(connection, plan, embedded=embedded)


def drop_unread_slot(dsn: str, plan: Plan) -> None:
    """Drop the plan's slot, which is known to be the lake's, unless it is being read."""
    with connect(dsn) as connection:
        connection.execute(drop_slot(plan.source_object).sql)


def identity_of(dsn: str) -> str:
    """Return the identity of the server, "" if the user cannot read it, and of the database."""
    with connect(dsn) as connection:
        (may_read,) = connection.execute(queries.MAY_IDENTIFY).fetchone() or (False,)
        system = None
        if may_read:
            with suppress(errors.FeatureNotSupported):  # perhaps by a reader of Aurora
                system = connection.execute(queries.SYSTEM_IDENTIFIER).fetchone()
        database = connection.execute(queries.DATABASE_OID).fetchone()
        assert database is not None
        return f"{system[0] if system else ''}/{database[0]}"


def remove_from_source(dsn: str, plan: Plan, owner: Owner) -> list[str]:
    """Run `leave_session` on a new connection, and return what is gone."""
    name, before = plan.source_object, []
    with connect(dsn) as connection:
        before = _ours(connection, name)
        leave_session(connection, plan, owner)
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
