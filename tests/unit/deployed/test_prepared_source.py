"""Log of the function that prepares the source of a deployment."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from cdclake.postgres.server import settings_warnings
from tests.load_function import load
from tests.unit.postgres.tables import plan, server

STACK = "arn:aws:cloudformation:eu-west-1:123456789012:stack/shop-cdc/1"


@pytest.mark.parametrize(("limit_mb", "is_warned"), [(-1, True), (65536, False)])
def test_unlimited_wal_is_logged_with_its_remedy(
    tmp_path, monkeypatch, caplog, limit_mb, is_warned
):
    function = load("prepare_source")
    file = tmp_path / "plan.json"
    file.write_text(plan().to_json())
    done = SimpleNamespace(database="shop", version=170011, slot_loss="")
    monkeypatch.setenv("LOGIN_SECRET", "shop/source")
    monkeypatch.setattr(function, "PLAN", file)
    monkeypatch.setattr(function, "secret", lambda _: {"password": "p"})
    monkeypatch.setattr(function, "connected", lambda _: nullcontext())
    monkeypatch.setattr(function, "prepare_session", lambda *_, **__: done)
    found = settings_warnings(server(slot_wal_mb=limit_mb))
    monkeypatch.setattr(function, "source_warnings", lambda *_, **__: found)
    function.do("Create", "prepared", STACK)
    logged = [each.message for each in caplog.records if each.levelname == "WARNING"]
    assert bool(logged) is is_warned
    assert all("ALTER SYSTEM SET max_slot_wal_keep_size" in line for line in logged)
