"""Lifecycle of a lake without replicated tables: polled tables, web logs and put tables.

It runs no Kafka, no Connect and no stream, and changes nothing in its source: polls use the login
of the source's DSN. So the source may be a read replica.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cdclake.jobs.runtime.source import connect
from cdclake.local.firehose import component
from cdclake.local.lake import stack
from cdclake.local.lake.client_files import write_client_files
from cdclake.local.lake.embedded_database import existing_database
from cdclake.local.lake.job_schedules import end_earlier_runs, schedule_jobs
from cdclake.local.lake.lake import (
    LakeState,
    LocalLake,
    create_bucket_and_database,
    describe_lake,
    shown_source,
    source_parts,
    write_plan,
)
from cdclake.local.lake.refused_sources import refuse_without_tables
from cdclake.local.lake.source import identity_of
from cdclake.local.lake.source_credentials import keep_login, keep_salt
from cdclake.local.lake_continuation import continued
from cdclake.local.polls import poll_new_tables
from cdclake.local.process.credentials import Login
from cdclake.local.process.home import Home
from cdclake.local.puts import put_lifecycle
from cdclake.local.puts.abandoned_records import refuse_to_abandon, refuse_to_leave
from cdclake.local.table_answer import table_answer
from cdclake.plan import Plan
from cdclake.postgres.source import check_polled_tables


def up(home: Home, plan: Plan, pipeline_file: str, dsn: str | None) -> dict[str, Any]:
    """Start or heal a lake that streams no tables, and return the answer of `up`."""
    component.requested_faults()
    before = LakeState.load(home)
    refuse_without_tables(before, plan, dsn)
    refuse_to_leave(home, before, plan)
    plan, known = continued(before, plan, pipeline_file)
    embedded = bool(plan.polled) and dsn is None
    login, source_id = None, ""
    if dsn is not None:
        login, source_id = _checked(dsn, plan), identity_of(dsn)
        home.remember("source_dsn", dsn)
    endpoints = stack.bring_up(home, embedded_postgres=embedded, streaming=False)
    refuse_to_abandon(home, before, plan)
    end_earlier_runs(home)
    write_client_files(home, endpoints)
    state = replace(
        known, external=dsn is not None, plan=plan.to_json(), pipeline_file=pipeline_file,
        database=existing_database(endpoints, plan, before), bare=False, source_id=source_id,
    )  # fmt: skip
    lake = describe_lake(home, state)
    if embedded:
        login = _checked(lake.dsn, plan)
    polled = _run(lake, login)
    return {**_answer(lake, dsn), **polled}


def _run(lake: LocalLake, login: Login | None) -> dict[str, Any]:
    """Create what the lake needs, start what it runs, and poll new tables.

    A paused lake has its schedules too, since `resume` sets none; its scheduled polls read nothing.
    """
    create_bucket_and_database(lake)
    put_lifecycle.prepare(lake)
    write_plan(lake)
    if login is not None:
        keep_login(lake.plan, login.password, user=login.user)
        keep_salt(lake.plan, lake.mask_salt)
    lake.state.save(lake.home)
    if lake.plan.streams and not lake.state.paused:
        component.run(lake)
    polled = poll_new_tables(lake, None)
    schedule_jobs(lake)
    return polled


def _checked(dsn: str, plan: Plan) -> Login:
    """Return the session's login, for polls; raise InputError if the source lacks what they read.

    It may be libpq's defaults, which the DSN does not have.
    """
    with connect(dsn) as connection:
        check_polled_tables(connection, plan)
        return Login(connection.info.user, connection.info.password)


def _answer(lake: LocalLake, dsn: str | None) -> dict[str, Any]:
    source: Mapping[str, Any] | None = None
    if lake.plan.polled:
        source = shown_source(source_parts(lake.dsn), dsn)
    tables = lake.plan.polled
    return {
        "ok": True,
        "source": source,
        "kafka": None,
        "connect": None,
        "s3": lake.s3,
        "glue": lake.glue,
        **({"firehose": lake.endpoints.firehose} if lake.plan.streams else {}),
        "clients": str(lake.home.clients),
        "logs": lake.endpoints.logs,
        "tables": [table_answer(table) for table in tables],
        **put_lifecycle.described(lake.plan),
        "paused": lake.state.paused,
    }
