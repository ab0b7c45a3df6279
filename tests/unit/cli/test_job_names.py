"""Names of jobs that `cdclake job` accepts, and those that it refuses with another command."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdclake.cli import job
from cdclake.cli import main as command


@pytest.mark.parametrize("name", ["publish_tables", "publish_hudi"])
@pytest.mark.parametrize("aws", [False, True])
def test_copies_are_published_by_either_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, aws: bool
) -> None:
    ran: list[Any] = []

    def run(given: str, *_: Any) -> dict[str, Any]:
        ran.append(given)
        return {"ok": True, "tables": []}

    monkeypatch.setattr(job, "_run_on_aws" if aws else "_run_here", run)
    with pytest.raises(SystemExit) as ended:
        command.main(("job", name, "--json", *(("--target", "aws") if aws else ())))
    assert (ended.value.code, ran) == (0, ["publish_hudi"])
    assert json.loads(capsys.readouterr().out)["ok"]


@pytest.mark.parametrize("more", [(), ("--target", "aws", "--file", "p.yaml")])
def test_an_erasure_is_refused_with_the_command_for_it(
    capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(("job", "forget_rows", *more, "--json"))
    error = json.loads(capsys.readouterr().out)["error"]
    assert (ended.value.code, error["code"]) == (2, "bad_input")
    assert "one order" in error["message"] and "`cdclake forget TABLE KEY`" in error["remedy"]


def test_an_unknown_job_is_refused_with_the_names_to_choose_from(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(("job", "nothing", "--json"))
    error = json.loads(capsys.readouterr().out)["error"]
    assert (ended.value.code, error["message"]) == (2, "unknown job 'nothing'")
    assert "publish_tables" in error["remedy"] and "forget_rows" not in error["remedy"]


def test_the_help_shows_both_names_of_the_publish_job(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(("job", "--help"))
    shown = capsys.readouterr().out
    assert "publish_tables" in shown and "publish_hudi" in shown
