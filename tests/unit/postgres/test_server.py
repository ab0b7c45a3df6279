"""What a server must be to stream, and the right of its user to set us up."""

from __future__ import annotations

from typing import Any

import pytest

from cdclake.postgres.server import check_server
from tests.unit.postgres.tables import server

OWN = {"slot_exists": True, "slot_plugin": "pgoutput", "slot_database": "shop"}
USER = {"superuser": False}


def test_a_healthy_server_is_taken() -> None:
    assert check_server(server(), "cdclake_shop") == []
    assert check_server(server(**OWN, slots=10), "cdclake_shop") == []


@pytest.mark.parametrize(
    ("changes", "words", "remedy"),
    [
        ({"version": 140012}, "PostgreSQL 14", "15"),
        ({"version": 190000}, "PostgreSQL 19", ""),
        ({"wal_level": "replica"}, "wal_level is replica", "ALTER SYSTEM SET wal_level = logical"),
        ({"wal_level": "replica", "rds": True}, "wal_level", "rds.logical_replication = 1"),
        ({"standby": True}, "standby", "primary"),
        ({"slots": 10}, "all 10 replication slots", "max_replication_slots = 15"),
        ({"senders": 10}, "all 10 WAL senders", "max_wal_senders = 15"),
        ({**OWN, "slot_active": True}, "another lake streams", "cdclake down"),
        ({**OWN, "slot_plugin": "wal2json"}, "wal2json", "pg_drop_replication_slot"),
        ({**OWN, "slot_database": "other"}, "database other", "another `name:`"),
        ({**USER, "creates_in_database": False}, "schema", 'GRANT CREATE ON DATABASE "shop"'),
        ({**USER, "creates_roles": False}, "role cdclake_shop", "CREATEROLE"),
        ({**USER, "replicates": False}, "REPLICATION", 'ALTER ROLE "me" REPLICATION'),
        ({**USER, "version": 150004}, "before PostgreSQL 16", "superuser"),
    ],
)
def test_what_is_missing_is_said_with_its_remedy(changes: Any, words: str, remedy: str) -> None:
    (refusal,) = check_server(server(**changes), "cdclake_shop")
    assert words in refusal.message
    assert remedy in refusal.remedy


def test_our_own_stream_is_no_stranger() -> None:
    state = server(**OWN, slot_active=True, senders=10)
    assert check_server(state, "cdclake_shop", own_stream=True) == []


def test_a_role_on_rds_is_given_what_replication_is_there() -> None:
    state = server(superuser=False, rds=True, replicates=False, version=150004)
    assert check_server(state, "cdclake_shop") == []
    assert state.replication_grant == "rds_replication"
    assert server().replication_grant is None


def test_a_bulk_load_needs_a_wal_sender_of_its_own() -> None:
    (refusal,) = check_server(server(senders=9), "cdclake_shop", is_bulk=True)
    assert "all but one of 10 WAL senders are taken" in refusal.message
    assert check_server(server(senders=8), "cdclake_shop", is_bulk=True) == []
    assert check_server(server(**OWN, senders=9), "cdclake_shop", is_bulk=True) == []
