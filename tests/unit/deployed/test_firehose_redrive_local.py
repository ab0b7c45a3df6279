"""The redrive of a local lake runs the deployed service with the lake's own clients."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from cdclake.errors import ComponentFailed, NotRunning
from cdclake.local.firehose import component, firehose_server
from cdclake.local.firehose.journal import Journal
from cdclake.local.lake.source_credentials import keep_salt
from cdclake.local.redrive import redrive_lake
from tests.recorded.firehose import read_by_firehose
from tests.unit.deployed.erasing import SALT, above, of_key, register
from tests.unit.deployed.redriving import (
    BUCKET,
    PREFIX,
    RECORDED,
    Stream,
    events,
    fail,
    plan,
    rows,
    waiting,
)

pytestmark = pytest.mark.usefixtures("redrive_deployed")


@pytest.fixture
def lake(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A lake with a running Firehose and one object of failed records."""
    states = [{"name": component.NAME, "state": "running"}]
    monkeypatch.setattr("cdclake.local.redrive.stack.components", lambda home: states)
    fail("processing-failed", "plain", events("plain"))
    return SimpleNamespace(
        plan=replace(plan(), name=PREFIX),
        control_uri=f"s3://{BUCKET}/control/{PREFIX}",
        bucket=BUCKET,
        home=None,
        state=SimpleNamespace(paused=False),
        client=lambda service: stream if service == "firehose" else boto3.client(service),
        component=states[0],
    )


def test_a_local_redrive_answers_as_a_deployed_one(lake: Any, stream: Stream) -> None:
    dry = redrive_lake(lake, dry_run=True)
    assert stream.records == []
    assert redrive_lake(lake, dry_run=False) == {**dry, "dry_run": False}
    assert dry["redriven"] == {"plain_changes": len(rows("plain"))}
    assert waiting() == []


def test_erased_keys_are_those_of_the_local_lake(lake: Any, stream: Stream) -> None:
    table = plan().table("plain")
    gone = of_key(table, rows("plain"), (4,))
    keep_salt(lake.plan, SALT)
    register(table, (4,), above(gone), uri=lake.control_uri)
    answer = redrive_lake(lake, dry_run=False)
    assert answer["dropped"] == len(gone)
    assert answer["redriven"] == {"plain_changes": len(rows("plain")) - len(gone)}


def test_the_local_firehose_reads_the_same_register(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, topic = plan().table("plain"), plan().table("plain").topic
    gone = of_key(table, rows("plain"), (4,))
    keep_salt(lake.plan, SALT)
    register(table, (4,), above(gone), uri=lake.control_uri)
    made: list[Any] = []
    monkeypatch.setattr(firehose_server, "Delivery", lambda *_, **parts: made.append(parts))
    monkeypatch.setattr(firehose_server, "LogTables", lambda *_: None)
    monkeypatch.setattr(firehose_server, "_source", lambda *_: None)
    lake.glue = lake.s3 = ""
    lake.endpoints = SimpleNamespace(keys=None)
    given = argparse.Namespace(faults="", transforms=tmp_path)
    journal = Journal(tmp_path / "journal.db")
    firehose_server._delivery(lake, lake.plan, journal, lake.plan.deliveries[0], given)
    sent = [record for record in RECORDED.of_topic(topic) if record.value is not None]
    appended, failed = made[0]["function"].transform([*map(read_by_firehose, sent)])
    assert (len(appended), failed) == (len(rows("plain")) - len(gone), [])


def test_a_local_redrive_needs_a_firehose_that_takes_rows(lake: Any, stream: Stream) -> None:
    stream.refuses = lambda: True
    with pytest.raises(ComponentFailed, match="did not accept"):
        redrive_lake(lake, dry_run=False)
    lake.component["state"] = "stopped"
    with pytest.raises(NotRunning, match="is not running"):
        redrive_lake(lake, dry_run=False)


def test_a_lake_without_firehose_has_nothing_to_redrive(lake: Any, stream: Stream) -> None:
    lake.component["state"] = "stopped"
    lake.plan = replace(lake.plan, deliveries=())
    told = redrive_lake(lake, dry_run=False)
    assert (told["ok"], told["objects"], told["tables"]) == (True, 0, [])
    assert stream.records == []


def test_the_answer_has_what_was_done_by_table(lake: Any, stream: Stream) -> None:
    fail("processing-failed", "parent", [b'{"source": {"schema": "public", "table": "parent"}}'])
    told = redrive_lake(lake, dry_run=False)
    assert told["tables"] == [
        {"table": "parent", "redriven": 0, "quarantined": 1},
        {"table": "plain", "redriven": len(rows("plain")), "quarantined": 0},
    ]
    assert "quarantined_of" not in told
