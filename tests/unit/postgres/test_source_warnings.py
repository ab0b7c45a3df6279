"""Warnings of partitioned tables with the identity FULL, which new partitions do not get."""

from __future__ import annotations

from typing import Any

import pytest

from cdclake.postgres import source_warnings as module
from tests.unit.postgres.tables import actual, declared, plan, server


@pytest.mark.parametrize(
    ("kind", "identity", "embedded", "warned"),
    [
        ("p", "full", False, True),
        ("p", "full", True, False),  # the lake's own database
        ("p", "default", False, False),
        ("r", "full", False, False),
    ],
)
def test_new_partitions_without_the_identity_are_a_warning(
    monkeypatch: pytest.MonkeyPatch, kind: str, identity: str, embedded: bool, warned: bool
) -> None:
    read = plan(declared(replica_identity=identity))
    found = actual(kind=kind)
    session: Any = None
    monkeypatch.setattr(module, "read_server", lambda *_: server())
    monkeypatch.setattr(module, "read_catalog", lambda *_, **__: (found,))
    warnings = module.source_warnings(session, read, embedded=embedded)
    assert bool(warnings) is warned
    assert all("REPLICA IDENTITY FULL" in warning.remedy for warning in warnings)
