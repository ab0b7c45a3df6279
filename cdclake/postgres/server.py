"""Admission of the source's server: all reasons why it cannot stream to the lake, at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cdclake.postgres.ownership import Owner, is_mark, mark_statement, name_in
from cdclake.postgres.quoting import identifier, literal
from cdclake.postgres.refusal import Refusal

# Column lists need 15; versions newer than 18 are untested.
OLDEST, NEWEST = 15, 18
# Since then a user with CREATEROLE and REPLICATION may grant both.
_GIVES_REPLICATION = 160000
HAS_FAILOVER_SLOTS = 170000
_SKIPS_MISSING_PUBLICATIONS = 180000
_UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class ServerState:
    """State of the server: the row of `queries.SERVER`, in its order."""

    version: int  # server_version_num
    wal_level: str
    standby: bool
    database: str
    user: str
    superuser: bool
    creates_roles: bool
    replicates: bool
    creates_in_database: bool
    rds: bool  # roles get rds_replication, since REPLICATION cannot be granted
    role_replicates: bool
    role_sees_all_rows: bool
    role_exists: bool
    max_slots: int
    slots: int
    max_senders: int
    senders: int
    slot_exists: bool
    slot_active: bool
    slot_plugin: str
    slot_database: str
    slot_wal_status: str
    publication_exists: bool
    role_comment: str  # "": none
    slot_wal_mb: int  # max_slot_wal_keep_size; -1: unlimited
    aurora: bool  # the volume grows with the WAL; no page of AWS says that it takes a limit
    encoding: str  # of the database

    @staticmethod
    def from_row(row: Sequence[Any]) -> ServerState:
        """Build the state from a row."""
        return ServerState(*row)

    @property
    def replication_grant(self) -> str | None:
        """Return the role to grant instead of the attribute REPLICATION."""
        return "rds_replication" if self.rds else None

    @property
    def slot_loss(self) -> str:
        """Return why the slot cannot be read further, which requires a new epoch; "" if it can.

        Before 18, PostgreSQL ends the decoding at the first change that was made while the
        publication did not exist: at the same place after every restart.
        """
        if self.slot_wal_status == "lost":
            return "has lost its WAL"
        is_fatal = self.version < _SKIPS_MISSING_PUBLICATIONS
        if self.slot_exists and not self.publication_exists and is_fatal:
            return "cannot be decoded past the time without a publication"
        return ""


def failover_problem(failover: bool | None, standbys: int, synchronized: str | None) -> str | None:
    """Return why the slot would be lost or skip changes at a failover; None if it would not.

    `failover`: whether the slot may be copied; None before PostgreSQL 17, or without a slot.
    `standbys`: physical slots that are streamed from.
    `synchronized`: the setting `synchronized_standby_slots`; None before PostgreSQL 17.
    """
    if standbys and synchronized is None:
        return (
            "before PostgreSQL 17 a failover loses the slot or, if a tool such as Patroni copies it"
            " to the standbys, may set it back: after one, follow `cdclake runbook restore`"
        )
    if failover is None or not standbys:
        return None
    if not failover:
        return (
            "the slot is not copied to the standbys: a failover loses it, and the lake then needs"
            " a new snapshot; run on a replication connection:"
            " ALTER_REPLICATION_SLOT <slot> (FAILOVER true)"
        )
    if not synchronized:
        return (
            "the slot may lag behind the connector on the standbys: list their slots in"
            " synchronized_standby_slots, and set sync_replication_slots = on on each standby"
        )
    return None


def check_server(
    state: ServerState, name: str, owner: Owner | None, *, is_bulk: bool = False
) -> list[Refusal]:
    """Return the reasons why the server cannot be the source of the pipeline `name`.

    `name`: the pipeline's role and slot.
    `owner`: the lake; None if the whole database belongs to it.
    `is_bulk`: a load holds the new slot's snapshot while the connector reads the slot.
    """
    return [
        *check_settings(state, senders=2 if is_bulk and not state.slot_exists else 1),
        *_check_rights(state, name),
        *(_check_slot(state, name) or check_owner(state, name, owner)),
    ]


def check_version(version: int) -> list[Refusal]:
    """Return the refusal of a version (server_version_num) that no pipeline can stream from."""
    major = version // 10000
    if OLDEST <= major <= NEWEST:
        return []
    message = f"it is PostgreSQL {major}; cdclake streams from {OLDEST} to {NEWEST}"
    return [Refusal("server", message, f"use PostgreSQL {OLDEST} to {NEWEST}")]


def check_encoding(encoding: str) -> list[Refusal]:
    """Return the refusal of a database whose texts have no known encoding.

    PostgreSQL validates them as UTF-8 for its reader: the first other byte ends every decoding.
    """
    if encoding != "SQL_ASCII":
        return []
    message = "its encoding is SQL_ASCII: text that is not UTF-8 would stop the connector"
    remedy = (
        "restore it into a database made by CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0,"
        " from pg_dump --encoding=E, where E is the encoding that its texts have"
    )
    return [Refusal("server", message, remedy)]


def check_settings(state: ServerState, *, senders: int = 1) -> list[Refusal]:
    """Return the reasons why no pipeline can stream from the server, whatever its name."""
    refusals = check_version(state.version)
    if state.standby:
        message = "it is a standby (in recovery): cdclake cannot create objects there"
        refusals.append(Refusal("server", message, "name the primary in --source"))
    refusals += check_encoding(state.encoding)
    if state.wal_level != "logical":
        refusals.append(
            Refusal(
                "server",
                f"wal_level is {state.wal_level}, but streaming requires wal_level = logical",
                "set rds.logical_replication = 1 in the parameter group and reboot"
                if state.rds
                else "run ALTER SYSTEM SET wal_level = logical; and restart the server",
            )
        )
    if not state.slot_exists and state.slots >= state.max_slots:
        message = f"all {state.max_slots} replication slots are taken (max_replication_slots)"
        refusals.append(Refusal("server", message, _more("max_replication_slots", state)))
    if not state.slot_active and state.senders + senders > state.max_senders:
        taken = "all" if state.senders >= state.max_senders else "all but one of"
        message = f"{taken} {state.max_senders} WAL senders are taken (max_wal_senders)"
        if senders > 1:
            message += f"; a bulk load needs {senders}"
        refusals.append(Refusal("server", message, _more("max_wal_senders", state)))
    return refusals


def settings_warnings(state: ServerState) -> list[Refusal]:
    """Return the settings that endanger the server although a pipeline can stream from it."""
    if state.slot_wal_mb != _UNLIMITED or state.aurora:
        return []
    message = (
        "max_slot_wal_keep_size is -1 (unlimited): a slot that nothing reads retains WAL until the"
        " disk is full and writes fail"
    )
    setting = (
        "max_slot_wal_keep_size = 65536 (MB) in the parameter group"
        if state.rds
        else "ALTER SYSTEM SET max_slot_wal_keep_size = '64GB'; SELECT pg_reload_conf();"
    )
    return [Refusal("server", message, f"choose a size that fits the disk: {setting}")]


def _more(setting: str, state: ServerState) -> str:
    limits = {"max_replication_slots": state.max_slots, "max_wal_senders": state.max_senders}
    wanted = f"{setting} = {limits[setting] + 5}"
    if state.rds:
        return f"set {wanted} in the parameter group and reboot"
    return f"run ALTER SYSTEM SET {wanted}; and restart the server"


def _check_rights(state: ServerState, role: str) -> list[Refusal]:
    if state.superuser:
        return []
    refusals = []
    user = identifier(state.user)
    if not state.creates_in_database:
        database = identifier(state.database)
        refusals.append(
            Refusal(
                f"user {state.user}",
                f"it may not create a schema or publication in {state.database}",
                f"GRANT CREATE ON DATABASE {database} TO {user};",
            )
        )
    if not state.creates_roles:
        refusals.append(
            Refusal(
                f"user {state.user}",
                f"it may not create the role {role} or set its password",
                f"ALTER ROLE {user} CREATEROLE; or connect as a superuser",
            )
        )
    if not state.rds and state.version < _GIVES_REPLICATION:
        refusals.append(
            Refusal(
                f"user {state.user}",
                f"before PostgreSQL 16 only a superuser may create or alter the role {role},"
                " which replicates",
                "connect as a superuser",
            )
        )
    elif not (state.rds or state.replicates or state.role_replicates):
        refusals.append(
            Refusal(
                f"user {state.user}",
                f"it may not grant {role} the attribute REPLICATION",
                f"ALTER ROLE {user} REPLICATION; or connect as a superuser",
            )
        )
    return refusals


def _check_slot(state: ServerState, name: str) -> list[Refusal]:
    if not state.slot_exists:
        return []
    drop = f"SELECT pg_drop_replication_slot({literal(name)});"
    if state.slot_plugin != "pgoutput" or state.slot_database != state.database:
        return [
            Refusal(
                f"slot {name}",
                f"a slot of this name exists for {state.slot_plugin or 'physical replication'}"
                f" on database {state.slot_database or 'none'}",
                f"give the pipeline another `name:`, or drop the slot if it is unused: {drop}",
            )
        ]
    return []


def check_owner(state: ServerState, name: str, owner: Owner | None) -> list[Refusal]:
    """Return why slot, publication and role `name` are not this lake's to change.

    A role that is alone and has no mark is free: the database's users may have created it.
    """
    if owner is None or owner.owns(state.role_comment):
        return []
    if is_mark(state.role_comment):
        other = f"they belong to another lake: {name_in(state.role_comment)}"
        remedy = "give the pipeline another `name:`, or run `cdclake down` there"
        return [Refusal(f"slot, publication and role {name}", other, _by_hand(state, name, remedy))]
    if owner.made_unmarked or not (state.slot_exists or state.publication_exists):
        return []
    unknown = "they were not made by this lake, and have no mark of their owner"
    remedy = "give the pipeline another `name:`"
    if state.role_exists:
        remedy += (
            f"; or if they are this lake's, run in the source: {mark_statement(name, owner.mark)}"
        )
    return [Refusal(f"slot, publication and role {name}", unknown, _by_hand(state, name, remedy))]


def _by_hand(state: ServerState, name: str, remedy: str) -> str:
    """Return the remedy, and the statements that remove the objects of a lake that is gone."""
    statements = []
    if state.slot_exists:
        statements.append(f"SELECT pg_drop_replication_slot({literal(name)});")
    if state.publication_exists:
        statements.append(f"DROP PUBLICATION {identifier(name)};")
    if state.role_exists:
        statements.append(f"DROP OWNED BY {identifier(name)}; DROP ROLE {identifier(name)};")
    gone = " ".join(statements)
    return f"{remedy}; or if their lake no longer exists, run in the source: {gone}"
