"""docs/jobs.md is the newest, and what it tells people to give a job is what the job reads."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from cdclake import naming
from cdclake.deployed_jobs import JOBS, TABLE_JOBS
from cdclake.job_package import script_of
from cdclake.jobs.runtime.arguments import read_arguments
from scripts.jobs_page import PAGE, page
from tests.unit.deployed.page import arguments_of_a_run, deployed_arguments

RUNTIME = Path(__file__).resolve().parents[3] / "glue_jobs" / "table_jobs" / "table_job.py"


def read_by(job: str) -> tuple[list[str], list[str]]:
    """The names that the job's own code asks for: required, optional."""
    if job not in TABLE_JOBS:
        required, optional = call_of("read_arguments", script_of(job)).args
        return names_in(required), names_in(optional)
    shared = [names_in(argument) for argument in call_of("read_arguments", RUNTIME).args]
    given = {k.arg: names_in(k.value) for k in call_of("run_over_tables", script_of(job)).keywords}
    return shared[0] + given.get("required", []), shared[1] + given.get("optional", [])


def call_of(function: str, source: Path) -> ast.Call:
    """The one call of the function in the file."""
    [call] = [
        node
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == function
    ]
    return call


def names_in(argument: ast.expr) -> list[str]:
    """The words of a list or tuple, without those that a caller adds."""
    assert isinstance(argument, ast.List | ast.Tuple)
    return [ast.literal_eval(e) for e in argument.elts if not isinstance(e, ast.Starred)]


def test_the_page_is_the_newest():
    assert PAGE.read_text() == page(), "run `make docs`"
    assert set(deployed_arguments()) == set(arguments_of_a_run()) == set(JOBS)


@pytest.mark.parametrize("job", JOBS)
def test_a_job_reads_everything_that_it_is_given_and_nothing_else(job):
    given = {**deployed_arguments()[job], **arguments_of_a_run()[job]}
    words = [word for name, value in given.items() for word in (name, value)]
    required, optional = read_by(job)
    glues_own = ["--JOB_NAME", "x", "--enable-metrics", "true", "--conf", "a=b --conf c=d"]
    resolved = read_arguments(required, optional, ["script.py", *glues_own, *words])
    assert resolved == {"JOB_NAME": "x", **{k.removeprefix("--"): v for k, v in given.items()}}


def test_the_streams_options_are_json_that_signs_in_by_iam():
    options = json.loads(deployed_arguments()[naming.STREAM_JOB]["--kafka_options"])
    assert options["kafka.security.protocol"] == "SASL_SSL"
    assert options["groupIdPrefix"] == naming.consumer_group_prefix("shop-prod")


def test_every_job_over_tables_can_be_given_tables():
    assert all("--tables" in arguments_of_a_run()[job] for job in TABLE_JOBS)
