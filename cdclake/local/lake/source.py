"""What the local lake does at the source database: prepare it, measure its slot, leave it."""

from __future__ import annotations

from cdclake.jobs.runtime.source import connect
from cdclake.plan import Plan
from cdclake.postgres import queries
from cdclake.postgres.source import Prepared, leave_session, prepare_session


def prepare_source(
    dsn: str, plan: Plan, *, embedded: bool, role_password: str, own_stream: bool = False
) -> Prepared:
    """`prepare_session` on a connection of its own."""
    with connect(dsn) as connection:
        return prepare_session(
            connection,
            plan,
            embedded=embedded,
            role_password=role_password,
            own_stream=own_stream,
        )


def remove_from_source(dsn: str, plan: Plan) -> None:
    """`leave_session` on a connection of its own."""
    with connect(dsn) as connection:
        leave_session(connection, plan)


def slot_wal(dsn: str, slot: str) -> tuple[int, int | None]:
    """WAL bytes that the slot holds (0 without a slot), and the most it may hold (None: no end)."""
    with connect(dsn) as connection:
        row = connection.execute(queries.SLOT_WAL, (slot,)).fetchone()
        assert row is not None
        return int(row[0] or 0), None if row[1] is None else int(row[1])
