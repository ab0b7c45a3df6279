"""Secrets of a DSN: none is an argument of a process, which other users of the machine see."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.cli.psql import _replace_process
from cdclake.cli.up import _kept_dsn
from cdclake.errors import InputError
from cdclake.local.lake.lake import LakeState
from cdclake.local.lake.spark_jobs import _source_arguments
from cdclake.local.process.home import Home
from tests.unit.postgres.tables import plan

DSN = (
    "host=db.example.org user=u dbname=d sslmode=require password=hidden1"
    " sslkey=/k.pem sslpassword=hidden2"
)


def test_no_argument_of_a_job_or_of_psql_has_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr("os.execve", lambda *given: started.append(given))
    _replace_process("psql", DSN, ["-c", "SELECT 1"])
    [(_, argv, environment)] = started
    assert "hidden" not in " ".join(argv) and environment["PGPASSWORD"] == "hidden1"
    arguments = _source_arguments(SimpleNamespace(dsn=DSN, plan=plan()))  # type: ignore[arg-type]
    assert "hidden" not in json.dumps(arguments)
    assert json.loads(arguments["source"])["sslkey"] == "/k.pem"


@pytest.mark.parametrize("is_stored", [False, True])
def test_up_refuses_a_password_of_the_key_file(tmp_path: Any, is_stored: bool) -> None:
    home = Home(tmp_path / "home")
    home.create()
    home.remember("source_dsn", DSN)
    LakeState(external=True).save(home)
    with pytest.raises(InputError, match="sslpassword") as caught:
        _kept_dsn(home, None if is_stored else DSN)
    assert "mode 600" in caught.value.remedy and "hidden" not in str(caught.value)
    assert "sslkey" in str(_kept_dsn(home, DSN.replace(" sslpassword=hidden2", "")))
