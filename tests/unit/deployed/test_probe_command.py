"""`cdclake doctor --target aws --probe` against moto: the job's checks, and how it ends."""

from __future__ import annotations

import json

import boto3
import pytest
from botocore.client import BaseClient

from cdclake.check import failed, passed, summary
from cdclake.cli import main as command
from cdclake.deployed import preflight
from cdclake.deployed.aws_jobs import DeployedJob
from tests.unit.config.pipelines import VALID
from tests.unit.deployed.test_aws_jobs import writes_its_report

JOB = "shop-dev-probe"
GROUP = f"/aws-glue/jobs/{JOB.replace('-probe', '/probe')}"
CLASSES = passed("java", "30 classes")
WRITES = failed("conditional writes", "S3 accepted it", "see the role's statements")


@pytest.fixture
def doctor(capsys, tmp_path, monkeypatch):
    """The command without the checks of the account, which have tests of their own."""
    file = tmp_path / "p.yaml"
    file.write_text(f"{VALID}environments: {{dev: {{}}}}\n")
    monkeypatch.setattr(preflight, "preflight", lambda deployment: [])

    def run(*words):
        where = (str(file), "--environment", "dev", "--probe", "--json")
        with pytest.raises(SystemExit) as caught:
            command.main(("doctor", *where, *words))
        return caught.value.code, json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def logged(monkeypatch):
    """Log groups of the job, and a log of each run that Glue starts."""
    logs = boto3.client("logs")
    streams: list[str] = []
    for kind in ("output", "error"):
        logs.create_log_group(logGroupName=f"{GROUP}/{kind}")
    start = DeployedJob.start

    def started(job, arguments):
        run_id = start(job, arguments)
        for kind in streams:
            logs.create_log_stream(logGroupName=f"{GROUP}/{kind}", logStreamName=f"{run_id}-driver")
        return run_id

    monkeypatch.setattr(DeployedJob, "start", started)
    return streams


@pytest.mark.parametrize(("checks", "code"), [([CLASSES], 0), ([CLASSES, WRITES], 1)])
def test_what_the_job_found_is_told(doctor, jobs_in_moto, logged, monkeypatch, checks, code):
    logged += ["output", "error"]
    report = summary(checks)
    writes_its_report(monkeypatch, jobs_in_moto, job=JOB, **report)
    ended, told = doctor("--target", "aws")
    assert (ended, told["checks"][:-1]) == (code, report["checks"])
    assert (told["checks"][-1]["name"], told["checks"][-1]["state"]) == ("logs", "ok")


@pytest.mark.parametrize("named", ["/aws-glue/jobs-shop-dev-role-shop-dev-jobs/", None])
def test_a_log_that_is_elsewhere_fails(doctor, jobs_in_moto, logged, monkeypatch, named):
    logged += ["output"]
    writes_its_report(monkeypatch, jobs_in_moto, job=JOB, **summary([CLASSES]))
    call = BaseClient._make_api_call

    def answered(client, operation, given):
        answer = call(client, operation, given)
        if operation == "GetJobRun":
            answer["JobRun"]["LogGroupName"] = named
        return answer

    monkeypatch.setattr(BaseClient, "_make_api_call", answered)
    ended, told = doctor("--target", "aws")
    found = told["checks"][-1]
    assert (ended, found["state"]) == (1, "failed")
    assert f"no log in {GROUP}/error" in found["detail"]
    assert found["detail"].endswith(f"Glue names the group {named or 'of its log nowhere'}")
    assert "begin with /aws-glue/ and contain shop-dev" in found["remedy"]
    assert f"aws glue get-job-run --job-name {JOB} --run-id " in found["remedy"]


def test_a_probe_that_dies_is_a_failure(doctor, jobs_in_moto):
    code, told = doctor("--target", "aws")
    assert (code, told["error"]["component"]) == (4, JOB)


def test_a_job_cannot_be_probed_here(doctor):
    code, told = doctor()
    assert (code, told["error"]["remedy"]) == (2, "add --target aws")
