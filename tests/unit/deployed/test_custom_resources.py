"""The custom resources on moto, and CloudFormation's answer over the wire."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.glue.models import glue_backends
from moto.moto_api import state_manager

from cdclake import cloudformation
from tests.load_function import load

CONTEXT = SimpleNamespace(log_stream_name="2026/11/22/[1]abc")
WHERE = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}


@pytest.fixture
def answers(aws: None) -> Iterator[Any]:
    """A server in CloudFormation's place: its address, and what it was told."""
    del aws
    told: list[dict[str, Any]] = []

    class Taking(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kind = self.headers["Content-Type"]
            told.append({**json.loads(body), "type": kind, "bytes": len(body)})
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Not to the tests' output."""

    server = HTTPServer(("127.0.0.1", 0), Taking)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/answer"
    with mock_aws(config={"core": {"passthrough": {"urls": [".*127.0.0.1.*"]}}}):
        yield SimpleNamespace(url=address, told=told)
    server.shutdown()


def event(answers: Any, what: str, kind: str = "Create", **properties: Any) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "ResourceType": f"Custom::Cdclake{what}",
        "ResponseURL": answers.url,
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Files",
        "ResourceProperties": properties,
    }


def test_files_are_copied_and_a_second_time_changes_nothing(answers):
    s3 = boto3.client("s3")
    for bucket in ("bootstrap", "state"):
        s3.create_bucket(Bucket=bucket, **WHERE)
    s3.put_object(Bucket="bootstrap", Key="abc.zip", Body=b"code")
    file = {"FromBucket": "bootstrap", "FromKey": "abc.zip", "ToKey": "deployed/jobs-abc.zip"}
    for kind in ("Create", "Update"):
        asked = event(answers, "Files", kind, Bucket="state", Files=[file])
        load("custom_resources").handler(asked, CONTEXT)
    copied = s3.get_object(Bucket="state", Key="deployed/jobs-abc.zip")
    assert copied["Body"].read() == b"code"
    first, second = answers.told
    assert first == second
    assert (first["Status"], first["PhysicalResourceId"]) == ("SUCCESS", "Files")
    assert first["type"] == ""  # the address is signed without one


@pytest.mark.parametrize(("denials", "state"), [(3, "SUCCESS"), (10**6, "FAILED")])
def test_a_copy_is_repeated_while_a_new_policy_is_not_in_effect(
    answers, monkeypatch, denials, state
):
    s3 = boto3.client("s3")
    for bucket in ("bootstrap", "state"):
        s3.create_bucket(Bucket=bucket, **WHERE)
    s3.put_object(Bucket="bootstrap", Key="abc.zip", Body=b"code")
    module, call = load("custom_resources"), BaseClient._make_api_call
    asked: list[str] = []
    now = [0.0]
    # The module's own name of it: other threads sleep, too, and would move this clock.
    clock = SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s)
    )
    monkeypatch.setattr(cloudformation, "time", clock)

    def denied(client: Any, operation: str, given: dict[str, Any]) -> Any:
        if operation != "CopyObject" or len(asked) == denials:
            return call(client, operation, given)
        asked.append(operation)
        reason = {"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
        raise ClientError(reason, operation)

    monkeypatch.setattr(BaseClient, "_make_api_call", denied)
    file = {"FromBucket": "bootstrap", "FromKey": "abc.zip", "ToKey": "deployed/jobs-abc.zip"}
    module.handler(event(answers, "Files", Bucket="state", Files=[file]), CONTEXT)
    [told] = answers.told
    assert told["Status"] == state
    assert state == "SUCCESS" or "AccessDenied" in told["Reason"]


def test_the_zone_of_a_subnet_is_found(answers):
    ec2 = boto3.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24", AvailabilityZone="eu-west-1b")[
        "Subnet"
    ]["SubnetId"]
    load("custom_resources").handler(event(answers, "Zone", SubnetId=subnet), CONTEXT)
    [answer] = answers.told
    assert (answer["Status"], answer["Data"]) == ("SUCCESS", {"AvailabilityZone": "eu-west-1b"})


def test_what_fails_is_answered_with_its_reason(answers):
    boto3.client("s3").create_bucket(Bucket="state", **WHERE)
    file = {"FromBucket": "nowhere", "FromKey": "abc.zip", "ToKey": "deployed/jobs-abc.zip"}
    asked = event(answers, "Files", Bucket="state", Files=[file])
    load("custom_resources").handler(asked, CONTEXT)
    [told] = answers.told
    assert told["Status"] == "FAILED"
    assert "NoSuchBucket" in told["Reason"] and "[1]abc" in told["Reason"]


@pytest.mark.parametrize("letter", ["a", "\n", "ä", "𝄞"])
def test_of_a_long_reason_cloudformation_is_told_as_much_as_it_takes(answers, monkeypatch, letter):
    """4096 bytes, and in each its log, where the rest is."""
    module = load("custom_resources")

    def fails(*_: Any) -> dict[str, str]:
        raise ValueError(letter * 5000)

    monkeypatch.setitem(module.ACTIONS, "Custom::CdclakeFiles", fails)
    module.handler(event(answers, "Files"), CONTEXT)
    [told] = answers.told
    assert 4096 - len(json.dumps(letter)) < told["bytes"] <= 4096
    assert told["Reason"].startswith(f"ValueError: {letter}{letter}")
    assert told["Reason"].endswith(f"{letter}; log 2026/11/22/[1]abc")


def test_a_deletion_leaves_everything(answers):
    asked = {**event(answers, "Files", "Delete"), "PhysicalResourceId": "Files"}
    load("custom_resources").handler(asked, CONTEXT)
    assert [told["Status"] for told in answers.told] == ["SUCCESS"]


def test_tables_are_waited_for_until_the_stream_has_made_them(answers, monkeypatch):
    module, glue = load("custom_resources"), boto3.client("glue")
    glue.create_database(DatabaseInput={"Name": "lake"})
    to_come = ["visits_changes", "visits"]

    def make_one(seconds: float) -> None:
        del seconds
        glue.create_table(DatabaseName="lake", TableInput={"Name": to_come.pop()})

    # The module's own: another thread's sleep would make a table too early.
    own_time = SimpleNamespace(monotonic=time.monotonic, sleep=make_one)
    monkeypatch.setattr(module, "time", own_time)
    asked = event(answers, "Tables", Database="lake", Tables=list(to_come))
    module.handler(asked, CONTEXT)
    assert (to_come, answers.told[0]["Status"]) == ([], "SUCCESS")


def test_tables_that_nobody_makes_are_named(answers, monkeypatch):
    module = load("custom_resources")
    boto3.client("glue").create_database(DatabaseInput={"Name": "lake"})
    monkeypatch.setattr(module, "_WAIT_S", 0.0)
    module.handler(event(answers, "Tables", Database="lake", Tables=["visits"]), CONTEXT)
    assert answers.told[0]["Status"] == "FAILED"
    assert "lake has no visits yet; deploy again when the stream runs" in answers.told[0]["Reason"]


def test_wait_after_a_late_denial_ends_before_lambda_does(answers, monkeypatch):
    module, now = load("custom_resources"), [0.0]

    def missing(*_: Any) -> list[str]:
        if now[0] == 0.0:
            now[0] = 59.0
            denied = {"Error": {"Code": "AccessDeniedException", "Message": "denied"}}
            raise ClientError(denied, "GetTable")
        return ["visits"]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(cloudformation, "time", clock)
    monkeypatch.setattr(module, "_missing", missing)
    module.handler(event(answers, "Tables", Database="lake", Tables=["visits"]), CONTEXT)
    assert "lake has no visits yet" in answers.told[0]["Reason"]
    assert 800 < now[0] < 870  # of 900 s


@pytest.mark.parametrize("is_older", [False, True])
def test_columns_that_a_table_lacks_are_waited_for_and_named(
    answers, monkeypatch, tmp_path, is_older
):
    """They are in the zip; a rollback may repeat an older deployment's properties, with them."""
    module = load("custom_resources")
    columns = {"visits": ["id", "at"]}
    file = tmp_path / "columns.json"
    file.write_text(json.dumps(columns))
    monkeypatch.setattr(module, "COLUMNS", file)
    told: dict[str, Any] = {"Columns": columns} if is_older else {"ColumnsDigest": "0a"}
    glue = boto3.client("glue")
    glue.create_database(DatabaseInput={"Name": "lake"})
    described = {"Columns": [{"Name": "id", "Type": "bigint"}]}
    glue.create_table(
        DatabaseName="lake", TableInput={"Name": "visits", "StorageDescriptor": described}
    )
    asked = event(answers, "Tables", Database="lake", Tables=["visits"], **told)
    monkeypatch.setattr(module, "_WAIT_S", 0.0)
    module.handler(asked, CONTEXT)
    assert "lake has no visits.at yet; deploy again" in answers.told[0]["Reason"]

    def changed(_: float) -> None:
        described["Columns"].append({"Name": "at", "Type": "timestamp"})
        glue.update_table(
            DatabaseName="lake", TableInput={"Name": "visits", "StorageDescriptor": described}
        )

    monkeypatch.setattr(module, "_WAIT_S", 60.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=changed))
    module.handler(asked, CONTEXT)
    assert answers.told[1]["Status"] == "SUCCESS"


def test_scheduled_stream_is_started_until_nothing_is_missing(answers, monkeypatch):
    module, glue, job = load("custom_resources"), boto3.client("glue"), "shop-stream_changes"
    glue.create_database(DatabaseInput={"Name": "lake"})
    glue.create_job(Name=job, Role="r", Command={"Name": "gluestreaming", "ScriptLocation": "s"})
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 1_000_000})
    earlier = glue.start_job_run(JobName=job)["JobRunId"]  # with the plan of before
    runs = glue_backends["123456789012"]["eu-west-1"].jobs[job].job_runs
    found: list[list[str]] = []

    def pause(_: float) -> None:
        found.append([run.job_run_id for run in runs])
        if len(found) in (2, 4):
            runs.clear()  # it ends, and has created nothing
        if len(found) == 6:
            glue.create_table(DatabaseName="lake", TableInput={"Name": "visits"})

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    asked = event(answers, "Tables", Database="lake", Tables=["visits"], Job=job)
    for _ in range(2):  # nothing is missing the second time
        module.handler(asked, CONTEXT)
    state_manager.unset_transition("glue::job_run")
    assert [each["Status"] for each in answers.told] == ["SUCCESS", "SUCCESS"]
    [last] = [run.job_run_id for run in runs]
    [first] = found[2]
    assert found == [[earlier], [earlier], [first], [first], [last], [last]]
    assert len({earlier, first, last}) == 3


POLLS = "shop-poll_tables"
POLLED = {"rates_changes": "rates", "rates": "rates"}


def test_missing_polled_tables_are_polled_once(answers, monkeypatch):
    """Also if the stream is scheduled, which creates none of them: it is not started."""
    module, glue = load("custom_resources"), boto3.client("glue")
    glue.create_database(DatabaseInput={"Name": "lake"})
    for job in ("shop-stream_changes", POLLS):
        command = {"Name": "glueetl", "ScriptLocation": "s"}
        limit = {"MaxConcurrentRuns": 2}
        glue.create_job(Name=job, Role="r", Command=command, ExecutionProperty=limit)
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 1_000_000})
    for _ in range(2):  # of the schedules, with the plan of before
        glue.start_job_run(JobName=POLLS, Arguments={"--run": "scheduled"})
    jobs = glue_backends["123456789012"]["eu-west-1"].jobs
    found: list[list[Any]] = []

    def pause(_: float) -> None:
        found.append([run.arguments for run in jobs[POLLS].job_runs])
        if len(found) == 2:
            jobs[POLLS].job_runs.clear()
        if len(found) == 4:
            for name in POLLED:
                glue.create_table(DatabaseName="lake", TableInput={"Name": name})

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
    asked = event(answers, "Tables", Database="lake", Tables=list(POLLED), Polled=POLLED,
                  PollJob=POLLS, Job="shop-stream_changes")  # fmt: skip
    module.handler(asked, CONTEXT)
    state_manager.unset_transition("glue::job_run")
    assert answers.told[0]["Status"] == "SUCCESS"
    busy, polling = [{"--run": "scheduled"}] * 2, [{"--tables": "rates"}]
    assert found == [busy, busy, polling, polling]
    assert jobs["shop-stream_changes"].job_runs == []


def test_missing_polled_table_is_reported_with_its_job(answers, monkeypatch):
    module = load("custom_resources")
    boto3.client("glue").create_database(DatabaseInput={"Name": "lake"})
    monkeypatch.setattr(module, "_WAIT_S", 0.0)
    asked = event(answers, "Tables", Database="lake", Tables=["rates"], Polled=POLLED,
                  PollJob=POLLS)  # fmt: skip
    module.handler(asked, CONTEXT)
    assert "no rates yet; deploy again when shop-poll_tables runs" in answers.told[0]["Reason"]


def test_job_is_started_once_the_account_has_room_for_a_run(answers, monkeypatch):
    module, glue = load("custom_resources"), boto3.client("glue")
    glue.create_database(DatabaseInput={"Name": "lake"})
    starts: list[str] = []

    def start(**call: Any) -> dict[str, str]:
        starts.append(call["JobName"])
        if len(starts) == 1:
            error = {"Error": {"Code": "ResourceNumberLimitExceededException", "Message": "full"}}
            raise glue.exceptions.ResourceNumberLimitExceededException(error, "StartJobRun")
        glue.create_table(DatabaseName="lake", TableInput={"Name": "visits"})
        return {"JobRunId": "jr_1"}

    monkeypatch.setattr(glue, "start_job_run", start)
    monkeypatch.setattr(module.boto3, "client", lambda _: glue)
    own_time = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: None)
    monkeypatch.setattr(module, "time", own_time)
    module.handler(
        event(answers, "Tables", Database="lake", Tables=["visits"], Job="shop-stream"), CONTEXT
    )
    assert answers.told[0]["Status"] == "SUCCESS"
    assert starts == ["shop-stream"] * 2


def test_the_brokers_of_iam_are_handed_on(answers, monkeypatch):
    module = load("custom_resources")
    asked_for: list[Any] = []

    class Kafka:  # moto has no GetBootstrapBrokers
        def get_bootstrap_brokers(self, **arguments: Any) -> dict[str, str]:
            asked_for.append(arguments)
            return {"BootstrapBrokerStringSaslIam": "b-1:9098,b-2:9098"}

    monkeypatch.setattr(module.boto3, "client", lambda service: {"kafka": Kafka()}[service])
    module.handler(event(answers, "Brokers", ClusterArn="arn:cluster", PerZone="1"), CONTEXT)
    assert asked_for == [{"ClusterArn": "arn:cluster"}]
    assert answers.told[0]["Data"] == {"Brokers": "b-1:9098,b-2:9098"}


def test_a_cluster_without_iam_access_is_explained(answers, monkeypatch):
    module = load("custom_resources")

    class Kafka:
        def get_bootstrap_brokers(self, **_: Any) -> dict[str, str]:
            return {"BootstrapBrokerStringTls": "b-1:9094"}

    monkeypatch.setattr(module.boto3, "client", lambda service: {"kafka": Kafka()}[service])
    module.handler(event(answers, "Brokers", ClusterArn="arn:cluster"), CONTEXT)
    [told] = answers.told
    assert told["Status"] == "FAILED"
    assert "arn:cluster has no brokers for IAM access" in told["Reason"]
    assert "KafkaOwner" in told["Reason"]
