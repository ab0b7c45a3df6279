"""Polls of one table next to each other: by a schedule, a comparison, an erasure, an operator."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.control_objects import Lease, PollProgress, lease_name, poll_error_name, poll_name
from cdclake.errors import TableError
from cdclake.jobs import poll_tables
from cdclake.jobs.control import leases
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.poll import table_poll
from cdclake.jobs.poll.polled_snapshot import SourceLogin
from cdclake.jobs.poll.table_poll import TablePoll, poll_table
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Plan, Table
from cdclake.polling import Polling
from tests.spark.events import MemoryStore
from tests.unit.verify.lakes import make_plan, make_table

CITY = make_table(name="city", delivery="poll", polling=Polling(by="v", every="rate(1 day)"))
WIDER = replace(CITY, columns=tuple(replace(column, type="bigint") for column in CITY.columns))
SWEEP_S = 1800.0  # three times as long as a run waits for another job
SCHEDULED = "poll_tables-rate-1-day"


@pytest.fixture
def store() -> Any:
    return MemoryStore()


def begin(
    _: Any,
    plan: Plan,
    store: Any,
    table: Table,
    started: float,
    plan_uri: str,
    *,
    is_whole: bool,
    metrics: Metrics,
) -> Any:
    """Return a poll of three rows, or of seven if all are read; check that the plan is newest."""
    del store, started
    assert metrics._dimensions == {"Deployment": "shop"}  # as the stream's: the alarm adds them
    assert (plan, table, plan_uri) == (make_plan(WIDER), WIDER, "s3://b/plan.json")
    return SimpleNamespace(run=lambda _: 7 if is_whole else 3)


@pytest.fixture
def poll(store: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """A poll of three rows that begins while a run of the given job holds the table's lease."""
    passed = [0.0]

    def read_plan() -> Plan:
        return make_plan(CITY if passed[0] < SWEEP_S else WIDER)

    def hold(holder: str) -> None:
        if passed[0] < SWEEP_S:
            lease = Lease(f"{holder}-1", passed[0] + 600.0)
            store.write(lease_name("city"), lease.to_json())
        else:
            store.delete(lease_name("city"))

    def run(holder: str, name: str = "verify_tables-1", **more: str) -> int:
        def sleep(_: float) -> None:
            passed[0] += 60.0
            hold(holder)

        clock = SimpleNamespace(time=lambda: passed[0], monotonic=lambda: passed[0], sleep=sleep)
        monkeypatch.setattr(leases, "time", clock)
        hold(holder)
        lake: Any = SimpleNamespace()
        own = Leases(store, "poll_tables")
        given = {"run": name, "plan": "s3://b/plan.json", "metrics": "shop", **more}
        job = TableJob(
            make_plan(CITY), lake, own, store, named=True, arguments=given, read_plan=read_plan
        )
        try:
            return poll_table(job, CITY)
        except TableError as error:
            assert store.read(poll_error_name("city")).content == {"error": str(error)}
            raise
        finally:
            assert own._held("city") is None

    monkeypatch.setattr(table_poll, "deployed_dsn", lambda _: nullcontext(""))
    monkeypatch.setattr(table_poll, "answer_request", lambda *_: None)
    monkeypatch.setattr(table_poll, "TablePoll", begin)
    return run


def test_a_poll_waits_for_a_longer_one_and_reads_the_plan_of_then(
    poll: Callable[..., int],
) -> None:
    assert poll("poll_tables") == 3


def test_an_operator_asks_for_all_rows(poll: Callable[..., int]) -> None:
    assert poll("poll_tables", "by-hand", whole="true") == 7


def test_a_scheduled_poll_leaves_the_table_to_another_poll(
    store: Any, poll: Callable[..., int]
) -> None:
    """Runs that wait take the places of other schedules and of a comparison."""
    store.write(poll_error_name("city"), {"error": "the last poll failed"})
    assert poll("poll_tables", SCHEDULED) == 0
    assert store.read(lease_name("city")) is not None  # not awaited
    assert store.read(poll_error_name("city")) is not None  # as no poll has succeeded since


def test_a_poll_renews_the_bound_of_the_stored_view(monkeypatch: pytest.MonkeyPatch) -> None:
    renewed: list[Any] = []
    monkeypatch.setattr(poll_tables, "poll_table", lambda _, table: 3)
    monkeypatch.setattr(poll_tables, "renew_view", lambda *arguments: renewed.append(arguments))
    job: Any = SimpleNamespace(lake="lake", plan=make_plan(CITY))
    assert poll_tables.poll_and_renew(job, CITY) == 3
    assert renewed == [("lake", make_plan(CITY), CITY)]


@pytest.mark.parametrize("name", [SCHEDULED, "verify_tables-1"])
def test_a_poll_fails_behind_another_job(poll: Callable[..., int], name: str) -> None:
    with pytest.raises(TableError, match="its lease was not free within 600 s"):
        poll("maintain_tables", name)


@pytest.mark.parametrize(
    ("started", "plan", "definition", "is_polled"),
    [
        (7.0, "s3://b/old.json", "other", False),
        (7.0, "s3://b/old.json", "", True),
        (9.0, "s3://b/new.json", "other", True),
        (7.0, "s3://b/plan.json", "other", True),
    ],
    ids=["older plan", "same columns", "newer plan", "plan that was read again"],
)
def test_poll_with_an_older_plan_than_the_last_one_does_nothing(
    started: float, plan: str, definition: str, is_polled: bool
) -> None:
    """It would rename a column that it does not know, as a dropped one.

    A plan of the same place as the last poll's was read after it, under the lease.
    """

    def create(_: Any) -> None:
        raise ConnectionError("the poll has begun")

    lake: Any = SimpleNamespace(create=create)
    store: Any = MemoryStore()
    poll = TablePoll(lake, make_plan(CITY), store, CITY, started, plan)
    definition = definition or poll._definition
    last = PollProgress(definition=definition, run_started=8.0, run_plan="s3://b/plan.json")
    store.write(poll_name("city"), last.to_json())
    login = SourceLogin(dsn="", salt="")
    if is_polled:
        with pytest.raises(ConnectionError, match="has begun"):
            poll.run(login)
    else:
        assert poll.run(login) == 0
