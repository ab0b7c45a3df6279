"""Every command of the command line prints exactly one JSON object with --json, also on failure.

The commands are those of the Typer application: a new one fails these tests until it is listed.
`tests/local/test_json_of_commands.py` runs the same commands on a lake.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdclake.cli import main as command
from tests.local.test_json_of_commands import ON_A_LAKE

# By command: the arguments of calls that need no lake, each with its exit code.
WITHOUT_A_LAKE: dict[str, list[tuple[int, tuple[str, ...]]]] = {
    "validate": [
        (0, ("FILE",)),
        (2, ("NOWHERE",)),
        (2, ("BROKEN",)),
        (2, ("FILE", "--environment", "dev")),
    ],
    "schema": [(0, ()), (0, ("--doc", "new_columns")), (2, ("--doc", "new_colums"))],
    "migrate": [(0, ("FILE",)), (2, ("NOWHERE",)), (2, ("BROKEN",)), (2, ("PSQL",))],
    "init": [
        (2, ("--update", "BROKEN", "--from-db", "postgresql://u:p@127.0.0.1:1/d")),
        (2, ()),
        (2, ("--update", "FILE")),
        (2, ("--update", "FILE", "-o", "NOWHERE")),
        (2, ("-o", "NOWHERE", "--from-db", "postgresql://u:p@127.0.0.1:1/d")),
        (2, ("--update", "FILE", "--from-db", "postgresql://u:p@127.0.0.1:1/d")),
    ],
    "new": [
        (0, ("shop-lake",)),
        (2, ("Shop lake",)),
        (2, ("shop", "--from-db", "postgresql://u:p@127.0.0.1:1/d")),
    ],
    "plan": [
        (0, ("FILE",)),
        (0, ("FILE", "--against", "FILE", "--target", "aws")),
        (2, ("BROKEN",)),
        (2, ("NOWHERE",)),
    ],
    "up": [(2, ("NOWHERE",)), (2, ("BROKEN",)), (2, ("FILE", "--wait", "never"))],
    "status": [(3, ()), (2, ("--target", "aws"))],
    "metrics": [(3, ()), (2, ("--serve", "0")), (3, ("--serve", "65000"))],
    "ui": [(3, ()), (2, ("--target", "aws")), (2, ("--port", "70000"))],
    "trace": [(3, ("orders", "1")), (2, ("orders",))],
    "peek": [(3, ("orders",)), (2, ()), (2, ("orders", "--last", "0"))],
    "quarantine": [(3, ()), (2, ("--limit", "0"))],
    "psql": [(3, ())],
    "verify": [
        (3, ()),
        (3, ("--deep",)),
        (3, ("--reader", "spark")),
        (3, ("--reader", "trino")),
        (2, ("--reader", "trino", "--target", "aws")),
        (2, ("--reader", "athena")),
        (2, ("--reader", "athena", "--target", "aws")),
    ],
    "source sql": [(2, ("NOWHERE",)), (2, ("BROKEN", "--target", "aws")), (2, ("PSQL",))],
    "snapshots": [(3, ("orders",)), (2, ()), (2, ("orders", "--target", "aws"))],
    "sql": [(3, ("select 1",)), (2, ()), (2, ("select 1", "--engine", "athena"))],
    "job": [(3, ("maintain_tables",)), (2, ("nothing",)), (2, ("apply_changes", "--file", "FILE"))],
    "resync": [(3, ("orders",)), (2, ()), (2, ("orders", "--target", "aws"))],
    "replay": [(3, ()), (2, ("--target", "aws"))],
    "redrive": [(3, ()), (2, ("--target", "aws"))],
    "forget": [
        (3, ("orders", "1", "--yes")),
        (2, ("orders",)),
        (2, ("orders", "1", "--grace", "never")),
        (2, ("orders", "--keys", "NOWHERE")),
    ],
    "runbook": [(0, ()), (0, ("lag",)), (2, ("lagg",)), (2, ("../README",))],
    "pause": [(3, ()), (2, ("--target", "aws"))],
    "resume": [(3, ()), (2, ("--target", "aws"))],
    "views": [(0, ("FILE",)), (2, ("BROKEN",)), (2, ("FILE", "--table", "nothing"))],
    "doctor": [(0, ()), (2, ("--target", "aws")), (2, ("BROKEN",))],
    "rehearse": [
        (2, ("FILE",)),
        (2, ("FILE", "--schema", "NOWHERE", "--migration", "NOWHERE")),
    ],
    "cost": [
        (2, ("BROKEN",)),
        (2, ("FILE", "--prices", "NOWHERE")),
        (2, ("FILE", "--templates", "NOWHERE")),
    ],
    "connect": [
        (3, ("duckdb",)),
        (2, ("snowflake",)),
        (0, ("spark", "--target", "aws", "--file", "FILE", "--region", "eu-west-1")),
        (2, ("trino", "--target", "aws", "--file", "FILE")),
    ],
    "connector": [
        (0, ("FILE", "--host", "db")),
        (0, ("FILE", "--worker", "--region", "eu-west-1")),
        (0, ("FILE",)),
        (0, ("FILE", "--worker")),
        (2, ("BROKEN",)),
    ],
    "dbt": [(0, ("FILE",)), (2, ("FILE", "--warn-after-hours", "0")), (2, ("BROKEN",))],
    "logs": [(3, ()), (2, ("--since", "soon")), (2, ("--target", "aws"))],
    "down": [(0, ()), (0, ("--purge",))],
    "demo": [(2, ("--delivery", "kafka")), (2, ("--seconds", "0"))],
}
CALLS = [(name, *call) for name, calls in WITHOUT_A_LAKE.items() for call in calls]


def _commands() -> dict[str, Any]:
    return command.commands()


def test_every_command_is_called_with_and_without_a_lake() -> None:
    assert WITHOUT_A_LAKE.keys() == _commands().keys()
    assert ON_A_LAKE.keys() == _commands().keys()


def test_every_command_has_the_option() -> None:
    lacking = [
        name
        for name, found in _commands().items()
        if not any("--json" in parameter.opts for parameter in found.params)
    ]
    assert lacking == []


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CDCLAKE_SOURCE_DSN", raising=False)
    monkeypatch.chdir(tmp_path)
    texts = {
        "FILE": "version: 1\nname: shop\nsource: {database: shop}\ntables:\n"
        "  public.orders: {key: [id], columns: {id: bigint}}\n",
        "PSQL": "SELECT 1;\n\\connect other\n",
        "BROKEN": "version: 1\ntables: [\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in (*texts, "NOWHERE")}


def _object_of(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[Any, Any]:
    """Return exit code and output of a command; the output is one object on one line."""
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    out = capfd.readouterr().out
    assert out.endswith("\n") and out.count("\n") == 1, out
    shown = json.loads(out)
    assert isinstance(shown, dict)
    return ended.value.code, shown


@pytest.mark.parametrize(
    ("name", "code", "given"), CALLS, ids=[f"{name} {' '.join(given)}" for name, _, given in CALLS]
)
def test_command_without_a_lake_prints_one_object(
    name: str,
    code: int,
    given: tuple[str, ...],
    files: dict[str, str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = [files.get(word, word) for word in given]
    ended, shown = _object_of([*name.split(), *words, "--json"], capfd)
    assert ended == code, shown
    if code:
        assert shown["ok"] is False
        assert {"code", "message", "remedy"} <= shown["error"].keys()
        assert shown["error"]["message"] and shown["error"]["remedy"]


@pytest.mark.parametrize("name", sorted(WITHOUT_A_LAKE))
def test_wrong_option_prints_one_object(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, shown = _object_of([*name.split(), "--json", "--no-such-option"], capfd)
    assert (code, shown["ok"]) == (2, False)
