"""Commands of the core's row in docs/how-to/own-project.md: they need no package of an extra."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cdclake.extras import MODULES
from tests.source_tree import PROJECT

PAGE = PROJECT / "docs" / "how-to" / "own-project.md"
FILE = "pipelines/shop.yaml"
DEPLOYED = ("--target", "aws", "--file", FILE, "--environment", "prod")
CLOSED = "http://127.0.0.1:1"
COMMANDS = [
    ("runbook",),
    ("new", "{folder}/new"),
    ("validate", FILE),
    ("schema",),
    ("migrate", FILE),
    ("init", "--from-db", "postgresql://127.0.0.1:1/none"),
    ("doctor",),
    ("plan", FILE, "--against", FILE),
    ("plan", FILE, "--environment", "prod"),
    ("dbt", FILE),
    ("views", FILE),
    ("connector", FILE, "--environment", "prod"),
    ("cost", FILE, "--environment", "prod", "--templates", "{folder}"),
    ("connect", "duckdb", "--region", "eu-west-1", *DEPLOYED),
    *((name, *DEPLOYED) for name in ("status", "logs", "verify", "pause", "resume", "replay")),
    ("job", "maintain_tables", *DEPLOYED),
    ("resync", "orders", *DEPLOYED),
    ("redrive", *DEPLOYED),
    ("forget", "orders", "1", "--yes", *DEPLOYED),
    ("source", "sql", "pipelines/shop.sql", *DEPLOYED),
    ("sql", "SELECT 1", "--engine", "athena", *DEPLOYED),
]
RUN_ALL = """
import contextlib, io, json, sys

missing, words = json.load(sys.stdin)
sys.modules.update(dict.fromkeys(missing))  # as if they were not installed
from cdclake.cli.main import main
errors = []
for each in words:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as e:
        with contextlib.suppress(SystemExit):
            main(each)
    errors.append(e.getvalue())
print(json.dumps(errors))
"""


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what each command prints on standard error without the packages of the extras."""
    folder = tmp_path_factory.mktemp("core")
    missing = [module for modules in MODULES.values() for module in modules]
    words = [[word.format(folder=folder) for word in command] for command in COMMANDS]
    aws = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_MAX_ATTEMPTS": "1"}
    place = {"AWS_DEFAULT_REGION": "eu-west-1", "AWS_ENDPOINT_URL": CLOSED}
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        input=json.dumps([missing, words]),
        cwd=PROJECT,
        env={**os.environ, **aws, **place, "CDCLAKE_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return {" ".join(command): text for command, text in zip(COMMANDS, found, strict=True)}


def test_a_command_takes_the_region_of_the_variable_that_its_errors_name(tmp_path: Path) -> None:
    known = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    aws = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_MAX_ATTEMPTS": "1"}
    place = {"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL": CLOSED, "CDCLAKE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "cdclake.cli.main", "resync", "orders", *DEPLOYED],
        cwd=PROJECT,
        env={**known, **aws, **place, "AWS_CONFIG_FILE": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Could not connect to the endpoint" in done.stderr, done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_commands_of_the_core_need_no_extra(
    errors: dict[str, str], command: tuple[str, ...]
) -> None:
    text = errors[" ".join(command)]
    assert "needs the Python package" not in text, text
    assert "unexpected error" not in text and "--help" not in text, text


def test_the_page_lists_the_commands_of_the_core() -> None:
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith("| `cdclake` |"))
    listed = {name.partition(" -")[0] for name in re.findall(r"`([a-z][^`]*)`", row)} - {"cdclake"}
    assert listed == {
        " ".join(command[: 2 if command[0] == "source" else 1]) for command in COMMANDS
    }
