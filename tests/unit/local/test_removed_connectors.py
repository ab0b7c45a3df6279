"""Connectors that left the pipeline file are deleted, also if `up` fails before it ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.connectors.declared import ICEBERG_SINK, DeclaredConnector
from cdclake.errors import ComponentFailed
from cdclake.local import streaming_start
from cdclake.local.lake import declared_connectors
from cdclake.local.lake.lake import LakeState, LocalLake
from cdclake.local.process.home import Home
from cdclake.plan import Plan
from cdclake.plan_diff import PlanDiff

KEPT, REMOVED = (
    DeclaredConnector(name=name, plugin=ICEBERG_SINK, connector_class="Sink", tables=("orders",))
    for name in ("kept", "removed")
)
BEFORE = Plan(
    name="x", source_database="d", lake_database="l", tables=(), connectors=(KEPT, REMOVED)
)
AFTER = replace(BEFORE, connectors=(KEPT,))


@pytest.fixture
def in_connect(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of Connect's connectors; the lake has no servers, and its marker does not arrive."""
    names = {connector.name for connector in BEFORE.connectors}

    def no_marker(*_: Any) -> None:
        raise ComponentFailed("the marker did not arrive", "run `cdclake up` again")

    markers = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(streaming_start, "MarkerReader", lambda *_: markers)
    for name in ("keep_what_is_read", "_start_connector", "run_stream"):
        monkeypatch.setattr(streaming_start, name, lambda *_, **__: None)
    monkeypatch.setattr(streaming_start, "await_marker", no_marker)
    monkeypatch.setattr(
        declared_connectors,
        "client",
        lambda _, name: SimpleNamespace(remove=lambda: names.discard(name)),
    )
    return names


def test_a_removed_connector_is_deleted_before_its_plan_is_replaced(
    in_connect: set[str], tmp_path: Path
) -> None:
    home = Home(tmp_path)
    LakeState(plan=BEFORE.to_json()).save(home)
    state = LakeState(plan=AFTER.to_json())
    endpoints: Any = SimpleNamespace(kafka=None)
    lake = LocalLake(home=home, state=state, plan=AFTER, endpoints=endpoints, dsn="")
    nothing: Any = None
    with pytest.raises(ComponentFailed, match="marker"):
        streaming_start._flow(lake, nothing, PlanDiff(is_first=False), nothing, state)
    assert LakeState.load(home).plan == AFTER.to_json()  # the next `up` cannot find it
    assert in_connect == {"kept"}
