"""Sources that a lake without replicated tables refuses, since it polls another one."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from psycopg import errors

from cdclake.cli.up import _kept_dsn
from cdclake.errors import InputError
from cdclake.local.lake import refused_sources, source
from cdclake.local.lake.lake import LakeState
from cdclake.local.process.home import Home
from cdclake.postgres import queries
from tests.unit.local.test_unstreamed import PLAN

PRODUCTION = "postgresql://u@prod.example.org/shop"
REPLICA = "postgresql://u@replica.example.org/shop"
STAGING = "postgresql://u@staging.example.org/shop"
POLLED = LakeState(external=True, plan=PLAN.to_json(), source_id="7/5")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A lake that polls production."""
    monkeypatch.setattr(
        refused_sources, "identity_of", lambda dsn: "9/5" if "staging" in dsn else "7/5"
    )
    found = Home(tmp_path / "home")
    found.create()
    found.remember("source_dsn", PRODUCTION)
    POLLED.save(found)
    return found


@pytest.mark.parametrize("source_id", ["7/5", ""])
def test_a_lake_that_polls_refuses_another_server(home: Home, source_id: str) -> None:
    """An earlier version kept no identity of a polled source: it is then asked for it."""
    replace(POLLED, source_id=source_id).save(home)
    with pytest.raises(InputError, match="would mix the rows of both") as refused:
        _kept_dsn(home, STAGING)
    assert "cdclake down" not in refused.value.remedy  # which would change nothing
    home.remember("source_dsn", STAGING)  # as the remedy says
    assert _kept_dsn(home, STAGING) is not None


@pytest.mark.parametrize("source_id", ["7/5", ""])
@pytest.mark.parametrize("given", [PRODUCTION, REPLICA])
def test_a_lake_that_polls_may_read_a_replica_of_its_source(
    home: Home, given: str, source_id: str
) -> None:
    replace(POLLED, source_id=source_id).save(home)
    assert _kept_dsn(home, given) is not None


def test_an_unknown_source_that_does_not_answer_is_another_one(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def identity_of(dsn: str) -> str:
        if "prod" in dsn:
            raise InputError("the source does not answer", "start it")
        return "7/5"

    monkeypatch.setattr(refused_sources, "identity_of", identity_of)
    replace(POLLED, source_id="").save(home)
    with pytest.raises(InputError, match="would mix the rows of both"):
        _kept_dsn(home, REPLICA)


def test_the_identity_of_a_server_without_the_function_is_its_database_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be granted and not supported, perhaps by a reader of Aurora."""

    def execute(query: str) -> Any:
        if query == queries.SYSTEM_IDENTIFIER:
            raise errors.FeatureNotSupported("not supported")
        return SimpleNamespace(fetchone=lambda: ("5" if query == queries.DATABASE_OID else True,))

    connection = SimpleNamespace(execute=execute)
    monkeypatch.setattr(source, "connect", lambda _: nullcontext(connection))
    assert source.identity_of(PRODUCTION) == "/5"


def test_a_lake_that_polled_its_own_server_refuses_an_external_one(home: Home) -> None:
    replace(POLLED, external=False, source_id="").save(home)
    with pytest.raises(InputError, match="reads its own PostgreSQL"):
        _kept_dsn(home, PRODUCTION)


def test_a_lake_that_never_polled_takes_any_source(home: Home) -> None:
    replace(POLLED, plan="", source_id="").save(home)
    assert _kept_dsn(home, STAGING) is not None
