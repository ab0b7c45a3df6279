"""What `up` accepts of a Kafka that has lost everything, and which tables `resync` then chooses."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from cdclake.cli import main as command
from cdclake.errors import ComponentFailed
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.operations.table_operations import TableOperations
from cdclake.jobs.reader.quarantine_counts import quarantined_events
from cdclake.local import streaming_start
from cdclake.local.components.connect import OFFSETS_TOPIC, ConnectApi
from cdclake.local.components.kafka import Broker
from cdclake.local.lake import connector_offsets, stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.lake import LakeState
from cdclake.local.lake.topics import Heartbeat
from cdclake.local.process.credentials import Login
from cdclake.local.process.home import Home
from tests.spark.events import MemoryStore, plan_of
from tests.unit.jobs.test_operate import MemoryBackend

TABLES = [plan_of().tables[0] for _ in range(3)]


@pytest.mark.parametrize(
    ("offset", "committed_us", "passed"),
    [(8, 20, True), (3, 20, False), (5000, 19, False)],
    ids=["read", "not read", "of the earlier topic"],
)
def test_up_accepts_no_heartbeat_older_than_its_marker(
    offset: int, committed_us: int, passed: bool
) -> None:
    marker = Heartbeat(offset=7, committed_us=20)
    progress = Progress(heartbeat_offsets={0: offset}, heartbeat_committed_us=committed_us)
    assert marker.has_passed(progress) is passed


@pytest.mark.parametrize(
    ("state", "end", "lost"),
    [
        (LakeState(), 0, False),
        (LakeState(epoch=1, connector_offsets="now"), 0, False),
        (LakeState(epoch=1, connector_offsets="before"), 3, True),
        (LakeState(epoch=1), 3, False),  # a lake of an earlier version
        (LakeState(epoch=1), 0, True),
    ],
)
def test_the_connectors_offsets_are_lost_with_their_topic(
    monkeypatch: pytest.MonkeyPatch, state: LakeState, end: int, lost: bool
) -> None:
    monkeypatch.setattr(connector_offsets, "end_offsets", lambda *_: {OFFSETS_TOPIC: {0: end}})
    assert connector_offsets.are_lost(Broker("", Login("", "")), state, "now") is lost


@pytest.mark.parametrize(
    ("offsets", "ahead"),
    [
        (None, False),
        ([], False),
        ([{"lsn": 50, "lsn_proc": 50, "lsn_commit": None}], False),
        ([{"lsn": 40, "lsn_proc": 51, "lsn_commit": 30}], True),
    ],
    ids=["no connector", "no offsets", "read through", "set back"],
)
def test_the_connectors_offsets_are_ahead_of_a_source_that_was_set_back(
    monkeypatch: pytest.MonkeyPatch, offsets: list[Any] | None, ahead: bool
) -> None:
    stored = offsets and {"offsets": [{"offset": each} for each in offsets]}
    monkeypatch.setattr(ConnectorClient, "_call", lambda *_, **__: stored)
    monkeypatch.setattr(connector_offsets, "wal_position", lambda _: 50)
    endpoints = SimpleNamespace(connect=ConnectApi("", Login("", "")))
    lake: Any = SimpleNamespace(endpoints=endpoints, plan=plan_of(), dsn="")
    assert connector_offsets.are_ahead(lake) is ahead


def test_offsets_that_are_ahead_are_kept_until_the_slot_is_dropped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An `up` that fails before leaves the next one the reason to begin an epoch."""
    calls: list[str] = []

    def call(_: object, method: str, path: str, **__: object) -> dict[str, Any]:
        calls.append(f"{method} {path}")
        return {"connector": {"state": "STOPPED"}}

    def is_in_use(_: object) -> None:
        raise ComponentFailed("the replication slot is still in use", "stop its client", "postgres")

    monkeypatch.setattr(ConnectorClient, "_call", call)
    monkeypatch.setattr(stack, "stop_component", lambda *_: None)
    monkeypatch.setattr(streaming_start, "end_epoch", is_in_use)
    connector = ConnectorClient(ConnectApi("", Login("", "")), plan_of())
    lake: Any = SimpleNamespace(home=Home(tmp_path), plan=plan_of(), state=LakeState(epoch=1))
    with pytest.raises(ComponentFailed):
        streaming_start._begin_epoch(lake, connector, is_lost=True)
    assert ("PUT /stop" in calls, "DELETE /offsets" in calls) == (True, False)
    monkeypatch.setattr(streaming_start, "end_epoch", lambda _: calls.append("slot dropped"))
    streaming_start._begin_epoch(lake, connector, is_lost=True)
    assert calls.index("slot dropped") < calls.index("DELETE /offsets")


@pytest.mark.parametrize("words", [["resync"], ["resync", "orders", "--expired"]])
def test_resync_takes_either_a_table_or_expired(capsys: Any, words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main([*words, "--json"])
    error = json.loads(capsys.readouterr().out)["error"]
    assert (caught.value.code, "a table or --expired" in error["message"]) == (2, True)


def test_expired_are_the_tables_that_lack_events() -> None:
    """Also one that streams again without having been read, as when a resync was interrupted."""
    control: Any = MemoryStore()
    stopped, incomplete, flowing = TABLES
    progress = Progress()
    progress.table(stopped.name).stop("why")
    progress.table(incomplete.name).incomplete = "rows are missing"
    progress.table(flowing.name)
    progress.save(control)
    lost = TableOperations(MemoryBackend(control, lost=True)).incomplete(TABLES)
    assert lost == [stopped, incomplete]
    assert TableOperations(MemoryBackend(control)).incomplete(TABLES) == [incomplete]


def test_a_refused_event_that_two_streams_have_written_counts_once() -> None:
    """Quarantine's append is not fenced: all tables share it."""
    session = duckdb.connect()
    session.execute(
        """CREATE TABLE cdclake_quarantine AS SELECT * FROM (VALUES
        ('t', 0, 1, 'orders'), ('t', 0, 1, 'orders'), ('t', 1, 1, 'orders'), ('u', 0, 1, 'items'))
        AS rows (topic, "partition", "offset", "table")"""
    )
    reader: Any = SimpleNamespace(open=lambda *_, **__: nullcontext(session))
    assert quarantined_events(reader) == {"orders": 2, "items": 1}
