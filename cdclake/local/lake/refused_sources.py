"""Sources that a lake cannot go on with: `up` and `plan` refuse them."""

from __future__ import annotations

from typing import Any

from cdclake.errors import InputError
from cdclake.local.components import postgres
from cdclake.local.lake.lake import LakeState, source_parts
from cdclake.local.lake.source import identity_of
from cdclake.local.lake.source_tls import secured
from cdclake.local.process.home import Home, read_json
from cdclake.plan import Plan


def without_own(home: Home, state: LakeState, dsn: str | None, plan: Plan | None) -> str | None:
    """Return the DSN, or None for that of the home's own PostgreSQL, which is used without one.

    Raises InputError if `plan` reads another of its databases than the DSN names.
    """
    if dsn is None or (state.external and state.newest_epoch):
        return dsn
    given = source_parts(dsn)
    own_port = read_json(home.ports_file).get(postgres.NAME)
    if given["host"] not in ("127.0.0.1", "localhost") or given["port"] != own_port:
        return dsn
    read = {state.database} if state.epoch else {plan.source_database} if plan else set()
    if plan is not None and plan.all_tables and given["dbname"] not in {*read, postgres.DATABASE}:
        raise InputError(
            f"the DSN names the database {given['dbname']} of the lake's own PostgreSQL, but the"
            f" lake reads {' '.join(read) or postgres.DATABASE}",
            "unset CDCLAKE_SOURCE_DSN, or omit --source; the pipeline file names the database",
        )
    return None


def refuse_another_source(home: Home, state: LakeState, dsn: str | None) -> None:
    """Raise InputError if the lake reads another source than the given one.

    A lake that has left its source may stream from another one: a new epoch replaces its rows.
    """
    if dsn is None or not state.newest_epoch:
        return
    if not state.external:
        raise InputError(
            "this lake reads its own PostgreSQL, not the given source",
            "use another CDCLAKE_HOME for the other source, or `cdclake down --purge` first",
        )
    if not state.left_source and (state.source_id or not state.epoch):
        _refuse_another_database(home, state, dsn)


def _refuse_another_database(home: Home, state: LakeState, dsn: str) -> None:
    """Raise InputError for another database than that which the lake reads.

    A server behind the same address is not compared: it has replaced the first one there.
    """
    stored_dsn = secured(home.secret("source_dsn"))
    stored, given = source_parts(stored_dsn), source_parts(secured(dsn))
    if _address(given) == _address(stored):
        return
    if _is_same(state.source_id or _identity_if_up(stored_dsn), identity_of(secured(dsn))):
        return
    databases = f"the database {_shown(stored)}, and {_shown(given)} is another one"
    replace = f"write the new `source_dsn` into {home.secrets_file}"
    if state.in_source:
        raise InputError(
            f"this lake streams from {databases}: the slot in the first would retain WAL",
            "run `cdclake down` first, or use another CDCLAKE_HOME for the other source;"
            f" if the first is gone, {replace}",
        )
    raise InputError(
        f"this lake polls {databases}: the lake's tables would mix the rows of both",
        f"use another CDCLAKE_HOME for the other source; if it has replaced the first, {replace},"
        " then run `cdclake up` and `cdclake job poll_tables --whole`",
    )


def _identity_if_up(dsn: str) -> str:
    """Return the identity of a source that an earlier version did not store; "" if it is down."""
    try:
        return identity_of(dsn)
    except InputError:
        return ""


def _address(source: dict[str, Any]) -> tuple[Any, ...]:
    return source["host"], source["port"], source["dbname"]


def _shown(source: dict[str, Any]) -> str:
    return f"{source['host']}:{source['port']}/{source['dbname']}"


def _is_same(known: str, found: str) -> bool:
    """Compare two identities; the server's is in both only if both users could read it."""
    if not known:
        return False
    (system, database), (other, its_database) = known.split("/"), found.split("/")
    return database == its_database and (not system or not other or system == other)


def refuse_without_tables(state: LakeState, plan: Plan, dsn: str | None) -> None:
    """Raise InputError if the lake streams tables or a source is given, and the plan reads none."""
    if plan.tables:
        return
    if state.epoch:
        raise InputError(
            "this lake streams tables, but the pipeline file has none",
            "add this section to the lake's file, or use another CDCLAKE_HOME for this one",
        )
    if dsn is not None and not plan.polled:
        raise InputError("the pipeline file has no tables to read from a source", "omit the source")
