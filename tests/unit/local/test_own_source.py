"""A DSN of the lake's own PostgreSQL, as one that is exported for `init`, changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdclake.cli.up import _kept_dsn
from cdclake.errors import InputError
from cdclake.local import lake_forecast
from cdclake.local.lake.lake import LakeState
from cdclake.local.process.home import Home
from cdclake.local.source_forecast import SourceForecast
from tests.unit.postgres.tables import plan

PLAN = replace(plan(), source_database="shop")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.create()
    found.ports_file.write_text(json.dumps({"postgres": 15432}))
    return found


def dsn(dbname: str = "shop", host: str = "127.0.0.1", port: int = 15432) -> str:
    return f"postgresql://postgres:secret@{host}:{port}/{dbname}"


@pytest.mark.parametrize("state", [LakeState(), LakeState(epoch=1, database="shop", plan="{}")])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_own_postgresql_needs_no_dsn(home: Home, state: LakeState, host: str) -> None:
    state.save(home)
    assert _kept_dsn(home, dsn(host=host), PLAN) is None
    assert _kept_dsn(home, dsn("postgres"), PLAN) is None  # the default, as `up` returns it first


def test_a_home_that_took_its_own_for_an_external_source_is_healed(home: Home) -> None:
    LakeState(external=True, bare=True).save(home)
    home.remember("source_dsn", dsn())
    assert _kept_dsn(home, None, PLAN) is None


@pytest.mark.parametrize("given", [dsn(port=15433), dsn(host="db.example.org")])
def test_another_server_is_a_source(home: Home, given: str) -> None:
    assert _kept_dsn(home, given, PLAN) is not None
    LakeState(epoch=1).save(home)
    with pytest.raises(InputError, match="reads its own PostgreSQL"):
        _kept_dsn(home, given, PLAN)


@pytest.mark.parametrize("state", [LakeState(), LakeState(epoch=1, database="shop")])
def test_another_database_of_it_is_refused(home: Home, state: LakeState) -> None:
    state.save(home)
    with pytest.raises(InputError, match="the lake reads shop") as refused:
        _kept_dsn(home, dsn("other"), PLAN)
    assert "unset CDCLAKE_SOURCE_DSN" in refused.value.remedy
    assert _kept_dsn(home, dsn("other")) is None  # without a stream, no database is read


@pytest.mark.parametrize("is_up", [False, True])
def test_plan_asks_it_if_it_runs(home: Home, monkeypatch: pytest.MonkeyPatch, is_up: bool) -> None:
    asked: list[Any] = []

    def ask(given: str | None, *_: Any, embedded: bool, **__: Any) -> SourceForecast:
        asked.append((given, embedded))
        return SourceForecast()

    monkeypatch.setattr(lake_forecast, "_runs", lambda _: is_up)
    monkeypatch.setattr(lake_forecast, "ask_source", ask)
    lake_forecast.forecast_up(home, PLAN, "shop.yaml", dsn(), ())
    [(given, embedded)] = asked
    assert embedded and (given is not None) is is_up
