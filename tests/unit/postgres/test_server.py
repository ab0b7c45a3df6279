"""What a server must be to stream, and the right of its user to set us up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdclake.postgres.ownership import Owner
from cdclake.postgres.server import check_server, failover_problem, settings_warnings
from tests.unit.postgres.tables import server

OWN = {"slot_exists": True, "slot_plugin": "pgoutput", "slot_database": "shop"}
USER = {"superuser": False}
OWNER = Owner("local:a1", "/home/me/.cdclake on here")
OTHER = Owner("aws:1:eu-west-1:shop-cdc", "the stack shop-cdc")


def test_a_healthy_server_is_taken() -> None:
    assert check_server(server(), "cdclake_shop", OWNER) == []
    assert (
        check_server(server(**OWN, slots=10, role_comment=OWNER.mark), "cdclake_shop", OWNER) == []
    )


@pytest.mark.parametrize(
    ("changes", "words", "remedy"),
    [
        ({"version": 140012}, "PostgreSQL 14", "15"),
        ({"version": 190000}, "PostgreSQL 19", ""),
        ({"wal_level": "replica"}, "wal_level is replica", "ALTER SYSTEM SET wal_level = logical"),
        ({"wal_level": "replica", "rds": True}, "wal_level", "rds.logical_replication = 1"),
        ({"standby": True}, "standby", "primary"),
        ({"encoding": "SQL_ASCII"}, "SQL_ASCII", "ENCODING 'UTF8'"),
        ({"slots": 10}, "all 10 replication slots", "max_replication_slots = 15"),
        ({"senders": 10}, "all 10 WAL senders", "max_wal_senders = 15"),
        ({**OWN, "role_exists": True, "role_comment": OTHER.mark}, OTHER.name, "cdclake down"),
        ({**OWN, "role_exists": True, "role_comment": OTHER.mark}, OTHER.name, "DROP ROLE"),
        ({"role_exists": True, "role_comment": OTHER.mark}, OTHER.name, "DROP OWNED BY"),
        ({**OWN, "slot_active": True}, "not made by this lake", "pg_drop_replication_slot"),
        ({"publication_exists": True}, "not made by this lake", 'DROP PUBLICATION "cdclake_shop";'),
        ({**OWN, "role_exists": True}, "not made by this lake", f"IS '{OWNER.mark}'"),
        ({**OWN, "slot_plugin": "wal2json"}, "wal2json", "pg_drop_replication_slot"),
        ({**OWN, "slot_database": "other"}, "database other", "another `name:`"),
        ({**USER, "creates_in_database": False}, "schema", 'GRANT CREATE ON DATABASE "shop"'),
        ({**USER, "creates_roles": False}, "role cdclake_shop", "CREATEROLE"),
        ({**USER, "replicates": False}, "REPLICATION", 'ALTER ROLE "me" REPLICATION'),
        ({**USER, "version": 150004}, "before PostgreSQL 16", "superuser"),
    ],
)
def test_what_is_missing_is_said_with_its_remedy(changes: Any, words: str, remedy: str) -> None:
    (refusal,) = check_server(server(**changes), "cdclake_shop", OWNER)
    assert words in refusal.message
    assert remedy in refusal.remedy


def test_unlimited_wal_of_a_slot_is_a_warning_and_no_refusal() -> None:
    state = server(slot_wal_mb=-1)
    assert check_server(state, "cdclake_shop", OWNER) == []
    (warning,) = settings_warnings(state)
    assert "max_slot_wal_keep_size is -1 (unlimited)" in str(warning)
    sql = "ALTER SYSTEM SET max_slot_wal_keep_size = '64GB'; SELECT pg_reload_conf();"
    assert warning.remedy.endswith(sql)
    (warning,) = settings_warnings(server(slot_wal_mb=-1, rds=True))
    assert "parameter group" in warning.remedy and "ALTER SYSTEM" not in warning.remedy
    assert settings_warnings(server(slot_wal_mb=65536)) == []
    assert settings_warnings(server(slot_wal_mb=-1, rds=True, aurora=True)) == []


@pytest.mark.parametrize("changes", [{"slots": 10, "max_slots": 10}, {"senders": 10}])
def test_rds_takes_settings_by_its_parameter_group(changes: Any) -> None:
    (refusal,) = check_server(server(rds=True, **changes), "cdclake_shop", OWNER)
    assert "15 in the parameter group" in refusal.remedy
    assert "ALTER SYSTEM" not in refusal.remedy


def test_our_own_stream_is_no_stranger() -> None:
    state = server(**OWN, slot_active=True, senders=10, role_exists=True, role_comment=OWNER.mark)
    assert check_server(state, "cdclake_shop", OWNER) == []
    moved = replace(OWNER, name="/elsewhere on a machine")
    assert check_server(state, "cdclake_shop", moved) == []


def test_objects_without_a_mark_are_those_of_the_lake_that_made_them() -> None:
    state = server(**OWN, publication_exists=True, role_exists=True)
    assert len(check_server(state, "cdclake_shop", OWNER)) == 1
    assert check_server(state, "cdclake_shop", replace(OWNER, made_unmarked=True)) == []
    marked = replace(state, role_comment=OTHER.mark)
    assert len(check_server(marked, "cdclake_shop", replace(OWNER, made_unmarked=True))) == 1


def test_a_role_that_is_alone_and_has_no_mark_is_free() -> None:
    for comment in ("", "sees all rows, for cdclake"):
        state = server(role_exists=True, role_comment=comment)
        assert check_server(state, "cdclake_shop", OWNER) == []


def test_the_lakes_whole_database_has_no_other_owner() -> None:
    state = server(**OWN, role_exists=True, role_comment=OTHER.mark)
    assert check_server(state, "cdclake_shop", None) == []


def test_a_role_on_rds_is_given_what_replication_is_there() -> None:
    state = server(superuser=False, rds=True, replicates=False, version=150004)
    assert check_server(state, "cdclake_shop", OWNER) == []
    assert state.replication_grant == "rds_replication"
    assert server().replication_grant is None


def test_a_bulk_load_needs_a_wal_sender_of_its_own() -> None:
    (refusal,) = check_server(server(senders=9), "cdclake_shop", OWNER, is_bulk=True)
    assert "all but one of 10 WAL senders are taken" in refusal.message
    assert check_server(server(senders=8), "cdclake_shop", OWNER, is_bulk=True) == []
    assert (
        check_server(
            server(**OWN, senders=9, role_comment=OWNER.mark), "cdclake_shop", OWNER, is_bulk=True
        )
        == []
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({**OWN, "publication_exists": True}, ""),
        ({**OWN, "publication_exists": True, "slot_wal_status": "lost"}, "has lost its WAL"),
        (OWN, "cannot be decoded past the time without a publication"),
        ({**OWN, "version": 180001}, ""),
        ({}, ""),
    ],
)
def test_a_slot_that_cannot_be_read_further_is_lost(changes: Any, reason: str) -> None:
    assert server(**changes).slot_loss == reason


@pytest.mark.parametrize(
    ("failover", "standbys", "synchronized", "words"),
    [
        (None, 1, None, "before PostgreSQL 17"),
        (None, 0, None, None),
        (None, 1, "", None),  # without a slot
        (False, 0, "", None),
        (True, 1, "standby", None),
        (False, 1, "", "FAILOVER true"),
        (True, 1, "", "synchronized_standby_slots"),
    ],
)
def test_a_slot_that_a_failover_would_lose_is_reported(
    failover: bool | None, standbys: int, synchronized: str | None, words: str | None
) -> None:
    problem = failover_problem(failover, standbys, synchronized)
    assert (problem is None) if words is None else (problem is not None and words in problem)
