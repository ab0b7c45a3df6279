"""Operations of the local lake on the source database: prepare, measure the slot, clean up."""

from __future__ import annotations

from collections.abc import Collection

from cdclake.jobs.runtime.source import connect
from cdclake.plan import Plan
from cdclake.postgres import queries
from cdclake.postgres.server import failover_problem
from cdclake.postgres.source import Prepared, leave_session, prepare_session


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


def remove_from_source(dsn: str, plan: Plan) -> None:
    """Run `leave_session` on a new connection."""
    with connect(dsn) as connection:
        leave_session(connection, plan)


def slot_failover(dsn: str, slot: str) -> tuple[bool | None, str | None]:
    """Return whether standbys may copy the slot (None: unknown to the server), and the problem."""
    with connect(dsn) as connection:
        row = connection.execute(queries.SLOT_FAILOVER, (slot,)).fetchone()
        assert row is not None
        failover, standbys, synchronized = row
        problem = failover_problem(failover, standbys, synchronized)
        return failover, problem.replace("<slot>", slot) if problem else None


def slot_wal(dsn: str, slot: str) -> tuple[int, int | None]:
    """Return the WAL bytes that the slot retains (0: no slot), and the limit (None: unlimited)."""
    with connect(dsn) as connection:
        row = connection.execute(queries.SLOT_WAL, (slot,)).fetchone()
        assert row is not None
        return int(row[0] or 0), None if row[1] is None else int(row[1])
