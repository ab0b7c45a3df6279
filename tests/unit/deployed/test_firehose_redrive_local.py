"""The redrive of a local lake runs the deployed service with the lake's own clients."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from cdclake.errors import ComponentFailed, InputError, NotRunning
from cdclake.local.firehose import component
from cdclake.local.redrive import redrive_lake
from tests.unit.deployed.redriving import BUCKET, PREFIX, Stream, events, fail, plan, rows, waiting

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


def test_a_local_redrive_needs_a_firehose_that_takes_rows(lake: Any, stream: Stream) -> None:
    stream.refuses = lambda: True
    with pytest.raises(ComponentFailed, match="did not accept"):
        redrive_lake(lake, dry_run=False)
    lake.component["state"] = "stopped"
    with pytest.raises(NotRunning, match="is not running"):
        redrive_lake(lake, dry_run=False)
    lake.plan = replace(lake.plan, deliveries=())
    with pytest.raises(InputError, match="no table of the lake"):
        redrive_lake(lake, dry_run=False)
