"""Time limits of a source's database, which would end the sessions that read all of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cdclake.local.lake.source import prepare_source, remove_from_source
from cdclake.postgres import prepare
from cdclake.postgres.event_values import NO_TIMEOUTS
from tests.local.source_database import OWNER, PASSWORD, proposed, role_dsn, run

pytestmark = pytest.mark.local

LIMITS = (
    "statement_timeout",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "transaction_timeout",
)


@pytest.fixture
def app(database: str) -> Iterator[str]:
    """Return the DSN of a user with the documented rights, who owns the only table."""
    shop = conninfo_to_dict(database)["dbname"]
    run(
        database,
        f"CREATE ROLE limited_{shop} LOGIN CREATEROLE REPLICATION PASSWORD 'x'",
        f"ALTER DATABASE {shop} OWNER TO limited_{shop}",
        "CREATE TABLE a (id int PRIMARY KEY)",
        f"ALTER TABLE a OWNER TO limited_{shop}",
    )
    yield make_conninfo(database, user=f"limited_{shop}", password="x")
    run(
        database,
        f"ALTER DATABASE {shop} OWNER TO CURRENT_USER",
        f"DROP OWNED BY limited_{shop} CASCADE",
        f"DROP ROLE limited_{shop}",
    )


@pytest.mark.parametrize("existing", [False, True])
def test_the_role_has_no_time_limits(
    database: str, app: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, existing: bool
) -> None:
    plan, shop = proposed(database, tmp_path / "p.yaml"), conninfo_to_dict(database)["dbname"]
    role = plan.source_object
    if existing:
        run(
            database, f"CREATE ROLE {role} REPLICATION; ALTER ROLE {role} SET statement_timeout = 9"
        )
        run(database, f"GRANT {role} TO limited_{shop} WITH ADMIN OPTION")
    # A server before 17 does not have `transaction_timeout`.
    monkeypatch.setattr(prepare, "_TIME_LIMITS", (*prepare._TIME_LIMITS, "no_such_limit"))
    for _ in range(2):
        prepare_source(app, plan, embedded=False, owner=OWNER, role_password=PASSWORD)
    for limit in LIMITS:
        run(database, f"ALTER DATABASE {shop} SET {limit} = '1s'")
    for limit in LIMITS:
        assert run(database, f"SHOW {limit}") == [("1s",)]
        assert run(role_dsn(database, plan), f"SHOW {limit}") == [("0",)]
    remove_from_source(app, plan, OWNER)


def test_a_session_that_reads_for_long_lifts_its_time_limits(database: str) -> None:
    shop = conninfo_to_dict(database)["dbname"]
    for limit in ("statement_timeout", "transaction_timeout"):
        run(database, f"ALTER DATABASE {shop} SET {limit} = '1s'")
    with psycopg.connect(database) as connection:  # in a transaction, like a bulk load's reader
        for statement in NO_TIMEOUTS:
            connection.execute(statement.encode())
        connection.execute("SELECT pg_sleep(1.5)")
