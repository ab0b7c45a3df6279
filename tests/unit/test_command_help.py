"""Help, examples, completion, spellings and questions, equal over all commands."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from cdclake.cli.examples import EXAMPLES, example_lines
from cdclake.cli.main import commands, main
from cdclake.config.resolve import load_plan
from cdclake.local.lake.lake import LakeState
from cdclake.local.process.home import Home
from cdclake.local.process.job_schedule import JobSchedule
from tests.unit.config.pipelines import VALID
from tests.unit.terminal import on_a_terminal

COMMANDS = commands()
DSN_OPTIONS = {"--source", "--from-db"}


def test_every_command_has_an_example():
    assert sorted(EXAMPLES) == sorted(COMMANDS)


@pytest.mark.parametrize(
    ("command", "line"), [(c, line) for c in EXAMPLES for line in example_lines(c)]
)
def test_the_parser_takes_the_example(command, line):
    words = shlex.split(line)[1:]
    count = len(command.split())
    assert words[:count] == command.split()
    assert COMMANDS[command].make_context(command, words[count:])


def test_help_shows_the_examples(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["validate", "--help"])
    assert ended.value.code == 0
    assert "cdclake validate pipelines/shop.yaml" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fills_the_lines_of_a_narrow_terminal(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    text = capsys.readouterr().out.partition("Usage:")[2].partition("╭")[0]
    lines = [line.strip() for line in text.splitlines()]
    assert len(lines) > 2
    broken = [
        (line, below)
        for line, below in pairwise(lines)
        if line and below and len(f" {line} {below.split()[0]} ") <= 80
    ]
    assert broken == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_with_a_login_has_an_environment_variable(command):
    options = [each for each in COMMANDS[command].params if DSN_OPTIONS & set(each.opts)]
    assert {each.envvar for each in options} <= {"CDCLAKE_SOURCE_DSN"}


@pytest.mark.parametrize("spelled", [["--file", "FILE"], ["--file=FILE"], ["FILE"]])
def test_a_file_has_one_spelling(spelled, tmp_path, capsys):
    file = tmp_path / "p.yaml"
    file.write_text(VALID)
    with pytest.raises(SystemExit) as ended:
        main(["validate", *(word.replace("FILE", str(file)) for word in spelled), "--json"])
    assert (ended.value.code, '"ok": true' in capsys.readouterr().out) == (0, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_takes_a_file_takes_the_option(command):
    params = {each.name: each for each in COMMANDS[command].params}
    if "file" not in params or params["file"].param_type_name == "option":
        return
    others = [each for each in params.values() if each.required and each.name != "file"]
    needed = [word for each in others for word in (each.opts[0], "x")]
    parsed = COMMANDS[command].make_context(command, [*needed, "--file", "p.yaml"])
    assert parsed.params["file"] == Path("p.yaml")


def test_the_shell_completes_commands():
    asked = {"_CDCLAKE_COMPLETE": "complete_bash", "COMP_WORDS": "cdclake va", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "cdclake.cli.main"]
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True)
    assert done.stdout.split() == ["validate"]


def test_init_from_the_local_database_needs_a_lake(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit) as ended:
        main(["init", "-o", str(tmp_path / "p.yaml"), "--from-db", "local"])
    assert ended.value.code == 3
    assert not (tmp_path / "p.yaml").exists()


@pytest.fixture
def lake(tmp_path) -> Home:
    """A stopped lake with a table's files and the login of its source."""
    file = tmp_path / "p.yaml"
    file.write_text(VALID)
    home = Home(tmp_path / "home")
    home.create()
    LakeState(plan=load_plan(file).to_json(), epoch=1).save(home)
    (home.data("aws") / "warehouse").mkdir(parents=True)
    (home.data("aws") / "warehouse" / "part.parquet").write_bytes(b"x" * 57_000)
    return home


def test_purge_lists_what_it_deletes_and_asks(lake):
    code, shown = on_a_terminal(b"n\n", lake.path, "down", "--purge")
    assert (code, lake.data("aws").is_dir()) == (2, True)
    assert re.search(r"their history, and the control objects \(57\.0 kB\)", shown)
    code, shown = on_a_terminal(b"y\n", lake.path, "down", "--purge")
    assert (code, lake.data("aws").is_dir()) == (0, False)
    assert "the lake is deleted" in shown


def test_purge_deletes_what_it_lists_and_nothing_else(lake, monkeypatch, capsys):
    monkeypatch.setenv("CDCLAKE_HOME", str(lake.path))
    (lake.data("postgres") / "base").mkdir(parents=True)
    (lake.data("kafka") / "topic-0").mkdir(parents=True)
    lake.clients.mkdir()
    before = set(lake.data("aws").parent.iterdir())
    with pytest.raises(SystemExit) as ended:
        main(["down", "--purge", "--json"])
    assert ended.value.code == 0
    listed = {Path(part["where"]) for part in json.loads(capsys.readouterr().out)["deleted"]}
    assert lake.clients in listed and not lake.clients.exists()
    assert listed - {lake.path, lake.clients} == before - set(lake.data("aws").parent.iterdir())
    assert lake.path in listed and LakeState.load(lake) == LakeState()
    assert (lake.data("postgres") / "base").is_dir()


def test_purge_keeps_the_record_of_a_lake_that_it_cannot_delete(lake, monkeypatch, capsys):
    def refuse(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setenv("CDCLAKE_HOME", str(lake.path))
    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(SystemExit) as ended:
        main(["down", "--purge", "--json"])
    assert ended.value.code == 2
    assert "cannot delete" in json.loads(capsys.readouterr().out)["error"]["message"]
    assert LakeState.load(lake).epoch == 1


def test_purge_forgets_credentials_and_runs_of_scheduled_jobs(lake, monkeypatch):
    kept, renewed = "superuser_password", "kafka_password"
    before = {name: lake.secret(name) for name in (kept, renewed)}
    (lake.run / "logins.jaas").write_text(before[renewed])
    (lake.run / "plugins").mkdir()
    started = JobSchedule(lake)
    started.started("verify_tables", datetime.now(UTC))
    monkeypatch.setenv("CDCLAKE_HOME", str(lake.path))
    with pytest.raises(SystemExit):
        main(["down", "--purge", "--json"])
    assert {each.name for each in lake.run.iterdir()} == {"change.lock"}
    lake.create()  # as the next `up`
    assert lake.secret(kept) == before[kept] and lake.secret(renewed) != before[renewed]


def test_purge_does_not_ask_with_yes(lake):
    code, shown = on_a_terminal(b"", lake.path, "down", "--purge", "--yes")
    assert (code, "Go on?" in shown, lake.data("aws").is_dir()) == (0, False, False)
