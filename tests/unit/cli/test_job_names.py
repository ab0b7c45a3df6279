"""Names of jobs that `cdclake job` accepts, and those that it refuses with another command."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake import naming
from cdclake.cli import job
from cdclake.cli import main as command
from cdclake.config.resolve import load_plan
from cdclake.deployed_jobs import resolve_name
from cdclake.errors import InputError
from cdclake.plan import Plan


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


PIPELINE = """
version: 1
name: shop
source: {database: shop}
tables:
  public.orders:
    key: [id]
    columns: {id: bigint}
    publish: [hudi: {name: orders_copy, schedule: rate(2 hours)}]
  public.city:
    key: [id]
    columns: {id: bigint, at: timestamptz}
    capture: {poll: {by: at, every: rate(1 day)}}
derived:
  daily: {sql: "SELECT id FROM orders_current", key: [id]}
"""
PLAIN = PIPELINE.partition("    publish")[0]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    file = tmp_path / "p.yaml"
    file.write_text(PIPELINE)
    return load_plan(file)


@pytest.mark.parametrize(
    ("name", "given", "found"),
    [
        (naming.APPLY_JOB, "public.orders", "orders"),
        (naming.POLL_JOB, "public.city", "city"),
        (naming.REFRESH_JOB, "daily", "daily"),
        (naming.PUBLISH_JOB, "orders_copy", "orders_copy"),
        (naming.MAINTAIN_JOB, "cdclake_quarantine", "cdclake_quarantine"),
    ],
)
def test_a_job_works_on_what_is_named(plan: Plan, name: str, given: str, found: str) -> None:
    assert resolve_name(name, plan, given) == found


@pytest.mark.parametrize(
    ("name", "given", "reason"),
    [
        (naming.POLL_JOB, "orders", "orders is not polled"),
        (naming.APPLY_JOB, "daily", "the lake has no table 'daily'"),
        (naming.APPLY_JOB, "cdclake_quarantine", "the lake has no table 'cdclake_quarantine'"),
        (naming.REFRESH_JOB, "orders", "no derived table"),
        (naming.PUBLISH_JOB, "orders", "no copy"),
    ],
)
def test_nothing_else_is(plan: Plan, name: str, given: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        resolve_name(name, plan, given)


ON_DEMAND = ["refresh_derived", "check_tables", "poll_tables", "publish_tables"]


@pytest.mark.parametrize(
    ("name", "text", "ran"),
    [
        *((name, PLAIN, []) for name in ON_DEMAND),
        ("apply_changes", PLAIN, ["apply_changes"]),
        ("refresh_derived", PIPELINE, ["refresh_derived"]),
        ("poll_tables", PIPELINE, ["poll_tables"]),
        ("publish_tables", PIPELINE, ["publish_hudi"]),
    ],
)
def test_a_job_without_work_starts_no_process(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
    text: str,
    ran: list[str],
) -> None:
    started: list[str] = []

    def run(_: Any, job_name: str, __: list[str]) -> dict[str, Any]:
        started.append(job_name)
        return {"ok": True, "tables": []}

    (tmp_path / "p.yaml").write_text(text)
    lake = SimpleNamespace(plan=load_plan(tmp_path / "p.yaml"))
    monkeypatch.setattr("cdclake.local.lake.lake.open_lake", lambda _: lake)
    monkeypatch.setattr("cdclake.local.lake.spark_jobs.run_job", run)
    with pytest.raises(SystemExit) as ended:
        command.main(("job", name, "--json"))
    assert (ended.value.code, started) == (0, ran)
    assert json.loads(capsys.readouterr().out) == {"ok": True, "tables": []}


def test_only_polls_read_all_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], plan: Plan
) -> None:
    given: list[Any] = []

    def run(_: Any, job_name: str, tables: list[str], **more: str) -> dict[str, Any]:
        given.append((job_name, tables, more))
        return {"ok": True, "tables": []}

    lake = SimpleNamespace(plan=plan)
    monkeypatch.setattr("cdclake.local.lake.lake.open_lake", lambda _: lake)
    monkeypatch.setattr("cdclake.local.lake.spark_jobs.run_job", run)
    codes = []
    for name, table in ((naming.POLL_JOB, "city"), (naming.APPLY_JOB, "orders")):
        with pytest.raises(SystemExit) as ended:
            command.main(("job", name, "--table", table, "--whole", "--json"))
        codes.append(ended.value.code)
    assert (codes, given) == ([0, 2], [(naming.POLL_JOB, ["city"], {"whole": "true"})])
    assert "--whole is an option of poll_tables" in capsys.readouterr().out
