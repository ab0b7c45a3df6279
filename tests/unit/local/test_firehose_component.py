"""When the local Firehose is started, stopped, and waited for."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake import naming
from cdclake.errors import ComponentFailed, InputError
from cdclake.local.components.connect import ConnectApi
from cdclake.local.components.kafka import Broker
from cdclake.local.firehose import component
from cdclake.local.firehose.journal import Journal, journal_file
from cdclake.local.lake.lake import LakeState, LocalLake
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.credentials import Login
from cdclake.local.process.home import Home
from cdclake.plan import Column, Plan, Table
from tests.recorded.firehose import stream_of

TABLE = Table(
    schema="public", table="t", name="t", topic="x.public.t", key=("id",), delivery="firehose",
    columns=(Column(source="id", name="id", type="bigint"),),
)  # fmt: skip
PLAN = Plan(
    name="x", source_database="d", lake_database="l", tables=(TABLE,),
    deliveries=(stream_of(TABLE),),
)  # fmt: skip
OTHER = replace(PLAN, trigger_seconds=3)
NONE = replace(PLAN, deliveries=())


class Stack:
    """What was asked of the processes."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def run_component(self, home: Home, spec: Any, *_: Any) -> None:
        self.asked.append(("run", spec))

    def stop_component(self, home: Home, name: str) -> None:
        self.asked.append(("stop", name))


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Stack:
    stack = Stack()
    monkeypatch.setattr(component, "stack", stack)
    monkeypatch.delenv(component.FAULTS_KEY, raising=False)
    return stack


def lake_of(folder: Path, plan: Plan, before: Plan = PLAN) -> LocalLake:
    home = Home(folder)
    home.create()
    LakeState(plan=before.to_json()).save(home)
    keys = Login("i", "s")
    broker, connect = Broker("k:1", keys), ConnectApi("http://c", keys)
    where = Endpoints(None, broker, connect, "http://s", "http://s", str(home.logs), keys)
    return LocalLake(home=home, state=LakeState(), plan=plan, endpoints=where, dsn="")


def test_another_plan_or_other_trouble_is_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(component.FAULTS_KEY, raising=False)
    first = component.spec(lake_of(tmp_path, PLAN))
    assert component.spec(lake_of(tmp_path, PLAN)) == first
    assert component.spec(lake_of(tmp_path, OTHER)) != first
    file = Path(first.argv[first.argv.index("--plan") + 1])
    assert Plan.from_json(file.read_text()) == PLAN
    monkeypatch.setenv(component.FAULTS_KEY, "7:fail")
    assert component.spec(lake_of(tmp_path, PLAN)).argv[-1] == "7:fail"
    monkeypatch.setenv(component.FAULTS_KEY, "fail")
    with pytest.raises(InputError, match="invalid fault injection"):
        component.requested_faults()


def test_it_runs_for_a_plan_with_streams_and_for_no_other(tmp_path: Path, processes: Stack) -> None:
    lake = lake_of(tmp_path, PLAN)
    component.run(lake)
    component.run(replace(lake, plan=NONE))
    assert processes.asked == [("run", component.spec(lake)), ("stop", "firehose")]


def test_it_ends_before_the_first_event_under_another_plan(
    tmp_path: Path, processes: Stack
) -> None:
    component.end_that_of_before(lake_of(tmp_path, PLAN))
    assert processes.asked == []
    component.end_that_of_before(lake_of(tmp_path, OTHER))
    assert processes.asked == [("stop", "firehose")]


@pytest.fixture
def offsets(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Kafka ends at 9; `arrived` says how far the stream is at each look."""
    said = SimpleNamespace(arrived=iter([{}, {0: 8}, {0: 9}]))

    def arrived_offsets(*_: Any) -> dict[str, dict[int, int]]:
        return {"t": next(said.arrived)}

    monkeypatch.setattr(component, "end_offsets", lambda *_: {"x.public.t": {0: 9}})
    monkeypatch.setattr(component, "arrived_offsets", arrived_offsets)
    monkeypatch.setattr(component, "_POLL_S", 0.0)
    return said


def test_what_was_sent_is_delivered_by_the_function_of_before(
    tmp_path: Path, processes: Stack, offsets: SimpleNamespace
) -> None:
    component.deliver_what_was_sent(lake_of(tmp_path, OTHER))
    assert processes.asked == [("run", component.spec(lake_of(tmp_path, PLAN)))]
    assert next(offsets.arrived, None) is None


def test_what_was_redriven_is_delivered_by_the_one_of_before(
    tmp_path: Path, processes: Stack, offsets: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(tmp_path, OTHER)
    redriven = naming.delivery_stream_name("x", naming.REDRIVE)
    Journal(journal_file(lake.home)).append(redriven, [b"{}"])
    offsets.arrived = iter([{0: 9}] * 1000)
    monkeypatch.setattr(component, "DELIVERY_TIMEOUT_S", 0.01)
    with pytest.raises(ComponentFailed, match="previous pipeline file were not delivered"):
        component.deliver_what_was_sent(lake)
    Journal(journal_file(lake.home)).forget(redriven, 2)
    component.deliver_what_was_sent(lake)


def test_a_delivery_that_does_not_end_is_said(
    tmp_path: Path, processes: Stack, offsets: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never() -> Iterator[dict[int, int]]:
        while True:
            yield {0: 8}

    offsets.arrived = never()
    monkeypatch.setattr(component, "DELIVERY_TIMEOUT_S", 0.01)
    with pytest.raises(ComponentFailed, match="previous pipeline file were not delivered"):
        component.deliver_what_was_sent(lake_of(tmp_path, OTHER))


def test_nothing_is_waited_for_where_nothing_was_delivered(
    tmp_path: Path, processes: Stack
) -> None:
    component.deliver_what_was_sent(lake_of(tmp_path, OTHER, before=NONE))
    assert processes.asked == []
