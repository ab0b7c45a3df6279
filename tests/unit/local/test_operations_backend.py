"""Operations on the local lake: outcomes, failures and timeouts."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.control_objects import outcome_name, request_name
from cdclake.errors import ComponentFailed, NotRunning, TableError
from cdclake.jobs.operations.table_operations import TableOperations
from cdclake.local import operations_backend
from cdclake.local.components.connect import ConnectApi
from cdclake.local.lake import stack
from cdclake.local.operations_backend import LocalBackend, local_operations
from cdclake.local.process.credentials import Login

STATES = ("kafka", "connect", "aws", "stream")


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Any:
    """As much of a lake as waiting needs: what is stored, what runs, and a connector."""
    stored: dict[str, dict[str, Any]] = {}
    found = SimpleNamespace(
        stored=stored,
        states=dict.fromkeys(STATES, "running"),
        failure=None,
        home=None,
        state=SimpleNamespace(paused=False),
        endpoints=SimpleNamespace(connect=ConnectApi("", Login("", ""))),
        plan=SimpleNamespace(
            source_object="cdclake_shop",
            table=lambda name: SimpleNamespace(name=name, source=name),
        ),
        control=SimpleNamespace(
            read=lambda name: (
                SimpleNamespace(content=stored[name], etag="1") if name in stored else None
            )
        ),
    )
    monkeypatch.setattr(
        stack,
        "components",
        lambda _: [{"name": name, "state": state} for name, state in found.states.items()],
    )
    connector = SimpleNamespace(failure=lambda: found.failure, reading=frozenset)
    monkeypatch.setattr(operations_backend, "ConnectorClient", lambda *_: connector)
    return found


def wait(lake: Any, wait_s: float = 0.0) -> dict[str, Any]:
    backend = LocalBackend(lake, {"replay": wait_s})
    return TableOperations(backend)._await_outcome("replay", "t", "mine")


def test_the_outcome_of_the_own_request_is_the_answer(lake: Any) -> None:
    lake.stored[outcome_name("t", "replay")] = {"id": "mine", "replayed": 2}
    assert wait(lake) == {"id": "mine", "replayed": 2}


def test_another_requests_outcome_is_none_and_the_wait_runs_out(lake: Any) -> None:
    lake.stored[outcome_name("t", "replay")] = {"id": "earlier", "replayed": 2}
    with pytest.raises(ComponentFailed, match="replay of t is still pending after 0 s"):
        wait(lake)


def test_a_repair_that_failed_says_why(lake: Any) -> None:
    lake.stored[outcome_name("t", "replay")] = {"id": "mine", "error": "no primary key"}
    with pytest.raises(ComponentFailed, match="replay of t failed: no primary key"):
        wait(lake)


def test_nobody_waits_for_what_is_dead_failed_or_stopped(lake: Any) -> None:
    lake.failure = "no such slot"
    with pytest.raises(ComponentFailed, match="the connector failed: no such slot"):
        wait(lake, 60)
    lake.states["stream"] = "dead"
    with pytest.raises(ComponentFailed, match="stream is dead"):
        wait(lake, 60)
    lake.failure, lake.states["stream"] = None, "running"
    stopped = {"offsets": {}, "state": "stopped", "last_error": "3 events refused"}
    lake.stored["progress.json"] = {"tables": {"t": stopped}, "heartbeat_offsets": {}}
    with pytest.raises(TableError, match=r"it is stopped: 3 events refused.*cdclake resume"):
        wait(lake, 60)


def test_nothing_is_asked_of_a_stream_that_does_not_run(lake: Any) -> None:
    LocalBackend(lake).check_running()
    lake.states["stream"] = "dead"
    with pytest.raises(NotRunning, match="stream is dead"):
        LocalBackend(lake).check_running()
    lake.state.paused = True
    with pytest.raises(NotRunning, match="the stream is paused"):
        LocalBackend(lake).check_running()


@pytest.mark.parametrize("signalled", [True, False])
def test_a_dead_resync_is_joined_only_if_the_connector_was_asked(
    lake: Any, monkeypatch: pytest.MonkeyPatch, signalled: bool
) -> None:
    lake.home, lake.dsn = SimpleNamespace(changing=nullcontext), ""
    request = {"id": "of-the-dead", "position": "", "notified": 7, "rejoins": False}
    lake.stored[request_name("t", "resync")] = request
    lake.state.epoch, lake.kafka, lake.plan.notification_topic = 1, "", "n"
    lake.control.write = lambda name, content: lake.stored.update({name: content})
    signals: list[str] = []
    monkeypatch.setattr(
        operations_backend, "is_signalled", lambda _, id: signalled and id == "of-the-dead"
    )
    monkeypatch.setattr(operations_backend, "last_position", lambda *_: None)
    monkeypatch.setattr(operations_backend, "end_offsets", lambda *_: {"n": {0: 9}})
    monkeypatch.setattr(operations_backend, "read_messages", lambda *_: (7, []))
    monkeypatch.setattr(
        operations_backend, "signal_snapshot", lambda dsn, tables, id: signals.append(id)
    )
    monkeypatch.setattr(operations_backend, "keep_resynced", lambda *_: None)
    monkeypatch.setattr(operations_backend, "read_relations", lambda *_: None)
    monkeypatch.setattr(operations_backend, "load_records", lambda *_: {})
    monkeypatch.setattr(operations_backend, "settled_lsn", lambda _: 5)
    monkeypatch.setattr(operations_backend, "check_snapshot", lambda *_: None)
    local_operations(lake).resync(lake.plan.table("t"), wait=False)
    stored = lake.stored[request_name("t", "resync")]
    assert (stored["id"] == "of-the-dead") == signalled
    assert signals == ([] if signalled else [stored["id"]])
    assert stored["notified"] == (7 if signalled else 9)
