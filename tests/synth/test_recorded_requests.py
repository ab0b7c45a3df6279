"""What the jobs asked of AWS on the local lake, judged by the policies that are deployed."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest

from cdclake.deployed_jobs import JOBS
from tests.recorded_requests.record import known
from tests.synth.permissions import allows, own_statements, rendered, role_of
from tests.synth.rules.reading import listed

HERE = "eu-west-1:111122223333"
BUCKETS = {"STATE": "arn:aws:s3:::state", "WAREHOUSE": "arn:aws:s3:::warehouse"}
KEY = f"arn:aws:kms:{HERE}:key/own"
SECRETS = {
    "shop/source": f"arn:aws:secretsmanager:{HERE}:secret:shop/source-1a",
    "shop/mask": "shop-source:ExportsOutputRefSaltSecret872B8D540F340E09",
}
# S3 asks KMS in the caller's name, as the buckets have their own key.
OF_S3 = {"s3:GetObject": "kms:Decrypt", "s3:PutObject": "kms:GenerateDataKey"}

Call = tuple[str, str, str]  # action, ARN, service through which KMS is asked

# Granted, and asked for by no recorded request: each with the reason that it is granted.
UNRECORDED = {
    "kafka-cluster:*": "the local broker has one login for everybody; see test_permissions.py",
    "ec2:*": "Glue itself attaches the job's workers to the network",
    "glue:GetConnection": "Glue itself reads the connection",
    "logs:*": "Glue itself writes the logs",
    "cloudwatch:PutMetricData": "there is no local CloudWatch: the jobs' log has the metrics",
    "s3:AbortMultipartUpload": "an upload of more than one part that fails",
    "s3:GetBucketLocation": "clients that are told no region; Glue's are told",
}


def role_name(job: str) -> str:
    return "".join(word.title() for word in job.split("_"))


def calls_of(job: str) -> Iterator[Call]:
    """What IAM is asked for the recorded requests of a job."""
    for action, on in known()[job]:
        on = on.replace("*", "x")
        service = action.partition(":")[0]
        if service == "s3":
            bucket, _, key = on.partition("/")
            yield (
                action,
                BUCKETS[bucket] if action == "s3:ListBucket" else (f"{BUCKETS[bucket]}/{key}"),
                "",
            )
            if action in OF_S3:
                yield OF_S3[action], KEY, "s3"
        elif service == "glue":
            database, _, table = on.partition("/")
            yield action, f"arn:aws:glue:{HERE}:catalog", ""
            yield action, f"arn:aws:glue:{HERE}:database/{database}", ""
            if table:
                yield action, f"arn:aws:glue:{HERE}:table/{database}/{table}", ""
        else:
            yield action, SECRETS[on], ""
            yield "kms:Decrypt", KEY, "secretsmanager"


def test_every_deployed_job_has_been_recorded():
    assert list(known()) == list(JOBS)
    assert all(known().values())


@pytest.mark.parametrize("job", JOBS)
def test_the_role_of_a_job_allows_what_it_asked_for(variants, job):
    role = role_of(variants["governed"], role_name(job))
    refused = [
        (action, arn)
        for action, arn, via in calls_of(job)
        if not allows(role, action, arn, ViaService=f"{via}.eu-west-1.amazonaws.com")
    ]
    assert refused == []


def test_a_permission_that_no_request_used_has_a_reason(variants):
    unused = sorted(
        {
            f"{job} {action} {arn}"
            for job in JOBS
            for action, arn in grants(variants, job)
            if not any(fits(action, arn, call) for call in calls_of(job))
        }
    )
    assert unused == []


def grants(variants, job) -> Iterator[tuple[str, str]]:
    """Each action with each resource that a job's role may use it on, but for those above."""
    for statement in own_statements(role_of(variants["governed"], role_name(job))):
        for action in listed(statement["Action"]):
            if not any(fnmatchcase(action, known_action) for known_action in UNRECORDED):
                yield from ((action, rendered(on)) for on in listed(statement["Resource"]))


def fits(action: str, arn: str, call: Call) -> bool:
    return action == call[0] and fnmatchcase(call[1], arn)
