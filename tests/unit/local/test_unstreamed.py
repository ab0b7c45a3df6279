"""A lake with only polled tables: what `up` runs and answers, and what `resume` lists."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from psycopg import Connection
from psycopg.pq import PGconn

from cdclake.cli import resume
from cdclake.debezium.types import parse_type
from cdclake.local import polls, streaming_start, unstreamed
from cdclake.local.lake import lake as lake_module
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LakeState, LocalLake
from cdclake.local.lake.stack import LocalSource
from cdclake.local.process.home import Home
from cdclake.plan import Column, Plan, Table
from cdclake.polling import Polling

SOURCE = LocalSource("127.0.0.1", 54321, "postgres", "secret", "postgres")
ORDERS = Table(
    schema="public", table="orders", name="orders", topic="x.public.orders", key=("id",),
    columns=(Column(source="id", name="id", type=str(parse_type("bigint"))),),
    delivery="poll", polling=Polling(by="id", every="rate(5 minutes)"),
)  # fmt: skip
PLAN = Plan(
    name="x", source_database="crm", lake_database="l", tables=(), polled=(ORDERS,),
    schedules={"maintain": "rate(1 day)"},
)  # fmt: skip

SYSTEM_USER = pwd.getpwuid(os.geteuid()).pw_name  # libpq's default


def lake_of(home: Path, *, paused: bool, dsn: str = SOURCE.dsn("crm")) -> LocalLake:
    endpoints: Any = SimpleNamespace(s3="s3", glue="glue", logs="logs", firehose="firehose")
    state = LakeState(plan=PLAN.to_json(), paused=paused)
    return LocalLake(home=Home(home), state=state, plan=PLAN, endpoints=endpoints, dsn=dsn)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Record the jobs that the lake runs and schedules; it has no servers."""
    found: dict[str, list[str]] = {"polled": [], "scheduled": [], "kept": []}
    for name in ("create_bucket_and_database", "write_plan"):
        monkeypatch.setattr(unstreamed, name, lambda _: None)
    monkeypatch.setattr("cdclake.local.puts.put_lifecycle.prepare", lambda _: None)
    monkeypatch.setattr("cdclake.local.lake.job_schedules.aws_environment", lambda _: {})
    monkeypatch.setattr(polls, "read_poll", lambda *_: None)

    def run_job(lake: LocalLake, job: str, tables: list[str]) -> dict[str, Any]:
        found["polled"] += tables
        return {"tables": []}

    def keep_login(_: Plan, password: str, *, user: str) -> None:
        found["kept"] += [user, password]

    def schedule(home: Home, jobs: list[Any]) -> None:
        found["scheduled"] += [f"{job.spec.name} {job.schedule}" for job in jobs]

    monkeypatch.setattr(unstreamed, "keep_login", keep_login)
    monkeypatch.setattr(unstreamed, "keep_salt", lambda *_: None)
    monkeypatch.setattr(polls, "run_job", run_job)
    monkeypatch.setattr(stack, "schedule_jobs", schedule)
    return found


@pytest.mark.parametrize(("paused", "polled"), [(False, ["orders"]), (True, [])])
def test_up_schedules_polls_also_of_a_paused_lake(
    ran: dict[str, list[str]], tmp_path: Path, *, paused: bool, polled: list[str]
) -> None:
    unstreamed._run(lake_of(tmp_path, paused=paused), None)
    [_, poll] = ran["scheduled"]
    assert poll.startswith("poll_tables") and poll.endswith("rate(5 minutes)")
    assert ran["polled"] == polled


@pytest.mark.parametrize(("paused", "did"), [(True, "resumed"), (False, "flows")])
def test_resume_lists_polled_tables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, paused: bool, did: str
) -> None:
    lake = lake_of(tmp_path, paused=paused)
    lake.__dict__["control"] = SimpleNamespace(read=lambda _: None)
    lake.state.save(lake.home)

    @contextmanager
    def changing_lake(home: Home) -> Iterator[LocalLake]:
        yield lake

    monkeypatch.setattr(lake_module, "changing_lake", changing_lake)
    monkeypatch.setattr("cdclake.local.firehose.component.run", lambda _: None)
    assert resume._resume_here() == {"ok": True, "tables": [{"table": "orders", "did": did}]}
    assert not LakeState.load(lake.home).paused


@contextmanager
def unanswered(dsn: str) -> Iterator[Connection]:
    """Yield libpq's own connection for the DSN, to a port where no server is."""
    with closing(Connection(PGconn.connect_start(f"{dsn} port=1".encode()))) as connection:
        yield connection


@pytest.mark.parametrize(
    ("given", "shell", "kept"),
    [
        ("host=127.0.0.1 dbname=crm user=reader password=secret", {}, ["reader", "secret"]),
        ("host=127.0.0.1 dbname=crm", {}, [SYSTEM_USER, ""]),
        ("host=127.0.0.1 dbname=crm user=reader", {"PGPASSWORD": "hidden"}, ["reader", "hidden"]),
    ],
)
def test_polls_log_in_as_the_session_that_checked_the_source(
    ran: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    given: str,
    shell: dict[str, str],
    kept: list[str],
) -> None:
    for name in ("PGUSER", "PGPASSWORD"):
        monkeypatch.delenv(name, raising=False)
    for name, value in shell.items():
        monkeypatch.setenv(name, value)
    lake = lake_of(tmp_path / "home", paused=False, dsn=given)
    lake.home.create()
    monkeypatch.setattr(unstreamed, "connect", unanswered)
    monkeypatch.setattr(unstreamed, "check_polled_tables", lambda *_: None)
    monkeypatch.setattr(unstreamed, "identity_of", lambda _: "7/5")
    monkeypatch.setattr(unstreamed, "continued", lambda *_: (PLAN, LakeState()))
    monkeypatch.setattr(unstreamed, "existing_database", lambda *_: "crm")
    monkeypatch.setattr(unstreamed, "write_client_files", lambda *_: None)
    monkeypatch.setattr(unstreamed, "describe_lake", lambda _, state: replace(lake, state=state))
    monkeypatch.setattr(stack, "bring_up", lambda *_, **__: lake.endpoints)
    monkeypatch.setattr(unstreamed, "end_earlier_runs", lambda _: None)
    answer = unstreamed.up(lake.home, PLAN, "shop.yaml", given)
    assert ran["kept"] == kept
    assert (answer["source"]["user"], answer["source"]["password"]) == (kept[0], None)
    assert ran["polled"] == ["orders"]
    assert LakeState.load(lake.home).source_id == "7/5"


def test_up_answers_with_the_source_as_for_a_streaming_lake(tmp_path: Path) -> None:
    own = lake_of(tmp_path, paused=False)
    assert unstreamed._answer(own, None)["source"] == {
        "host": "127.0.0.1", "port": 54321, "user": "postgres", "password": "secret",
        "dbname": "crm",
    }  # fmt: skip
    dsn = "postgresql://reader:secret@/crm?hostaddr=10.0.0.1"
    external = lake_of(tmp_path, paused=False, dsn=dsn)
    assert unstreamed._answer(external, dsn)["source"] == {
        "host": "10.0.0.1", "port": 5432, "user": "reader", "password": None, "dbname": "crm",
    }  # fmt: skip


LOGGED = replace(PLAN, tables=(replace(ORDERS, delivery="stream", polling=None),), polled=())
LEFT = replace(LOGGED, tables=())


@pytest.mark.parametrize(
    ("before", "epoch"),
    [
        (LakeState(), 1),
        (LakeState(plan=LEFT.to_json(), stored=LEFT.to_json()), 1),
        (LakeState(plan=PLAN.to_json(), stored=PLAN.to_json()), 2),
        (LakeState(plan=PLAN.to_json()), 2),  # of an earlier version
        (LakeState(plan=LEFT.to_json(), stored=PLAN.to_json()), 2),
        (LakeState(plan=PLAN.to_json(), stored=PLAN.to_json(), epoch=3), 4),
    ],
    ids=["new", "web_logs", "polled", "polled_without_record", "left_the_file", "streamed"],
)
def test_a_first_stream_is_above_the_rows_that_polls_have_read(
    tmp_path: Path, before: LakeState, epoch: int
) -> None:
    before.save(Home(tmp_path))
    state = replace(before, plan=LOGGED.to_json(), stored=LOGGED.to_json())
    lake = replace(lake_of(tmp_path, paused=False), state=state, plan=LOGGED)
    connector: Any = SimpleNamespace(forget_offsets=lambda: None)
    assert streaming_start._begin_epoch(lake, connector, is_lost=False).epoch == epoch
