"""What the jobs asked of AWS on the local lake, judged by the policies that are deployed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest

from cdclake.deployed_jobs import AT_KAFKA, JOBS
from tests.recorded_requests.functions import CALLS, FUNCTIONS
from tests.recorded_requests.kafka_audit import CONNECTOR
from tests.recorded_requests.reasons import (
    PROBE,
    REFUSED,
    STREAM,
    UNRECORDED,
    UNRECORDED_CALLS,
    UNRECORDED_OF_CONNECTOR,
)
from tests.recorded_requests.record import READER, known
from tests.recorded_requests.record_functions import called
from tests.source_tree import PROJECT
from tests.synth.deployments import Synthesized, Template
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
OF_S3 = {
    "s3:GetObject": "kms:Decrypt",
    "s3:GetObjectVersion": "kms:Decrypt",
    "s3:PutObject": "kms:GenerateDataKey",
}
LISTS = ("s3:ListBucket", "s3:ListBucketVersions")

Call = tuple[str, str, str]  # action, ARN, service through which KMS is asked

# What `cdclake sql --target aws` does before it reads: it gets the stream's job, whose arguments
# name the buckets, and looks for the types that the source has widened.
TO_FIND_THE_LAKE = {"glue:GetJob", "s3:GetObject", "s3:ListBucket"}
RIGHTS = PROJECT / "docs" / "runbooks" / "first-deployment.md"


def role_name(job: str) -> str:
    return "".join(word.title() for word in job.split("_"))


def calls_of(job: str) -> Iterator[Call]:
    """What IAM is asked for the recorded requests of a job, and does not refuse on purpose."""
    for request in known()[job]:
        if (job, *request) not in REFUSED:
            yield from asked_for(*request)


def asked_for(action: str, on: str) -> Iterator[Call]:
    """What IAM is asked for a recorded request."""
    on = on.replace("*", "x")
    service = action.partition(":")[0]
    if service == "s3":
        bucket, _, key = on.partition("/")
        yield (
            action,
            BUCKETS[bucket] if action in LISTS else (f"{BUCKETS[bucket]}/{key}"),
            "",
        )
        if action in OF_S3:
            yield OF_S3[action], KEY, "s3"
    elif service == "kafka-cluster":
        kind, _, name = on.partition("/")
        own = f"{kind}/shop/uuid/{name}" if name else "cluster/shop/uuid"
        yield action, f"arn:aws:kafka:{HERE}:{own}", ""
    elif service == "glue":
        database, _, table = on.partition("/")
        yield action, f"arn:aws:glue:{HERE}:catalog", ""
        yield action, f"arn:aws:glue:{HERE}:database/{database}", ""
        if table:
            yield action, f"arn:aws:glue:{HERE}:table/{database}/{table}", ""
    else:
        yield action, SECRETS[on], ""
        yield "kms:Decrypt", KEY, "secretsmanager"


def test_every_deployed_job_the_connector_and_the_reader_have_been_recorded():
    assert list(known()) == [*JOBS, CONNECTOR, READER]
    assert all(known().values())
    at_kafka = [who for who, calls in known().items() if any("kafka" in c[0] for c in calls)]
    assert {*at_kafka} == {*AT_KAFKA, CONNECTOR}


def test_the_connectors_role_allows_what_it_asked_of_kafka_and_nothing_else(variants):
    role = role_of(variants["governed"], "Connector")
    calls = list(calls_of(CONNECTOR))
    assert [call for call in calls if not allows(role, *call[:2])] == []
    unused = {
        (action, rendered(on).partition("/shop/*/")[2])
        for statement in own_statements(role)
        for action in listed(statement["Action"])
        for on in listed(statement["Resource"])
        if action.startswith("kafka-cluster:")
        and not any(fits(action, rendered(on), call) for call in calls)
    }
    assert unused == {*UNRECORDED_OF_CONNECTOR}


def test_a_person_who_queries_needs_the_rights_that_the_runbook_names():
    text = RIGHTS.read_text()
    rights = text.partition("To query")[2].partition("For `--probe")[0]
    used = {action for action, _ in known()[READER]}
    assert {*re.findall(r"`((?:glue|s3):\w+)`", rights)} == used | TO_FIND_THE_LAKE


@pytest.mark.parametrize("job", JOBS)
def test_the_role_of_a_job_allows_what_it_asked_for(variants, job):
    role = role_of(variants["governed"], role_name(job))
    refused = [
        (action, arn)
        for action, arn, via in calls_of(job)
        if not allows(role, action, arn, ViaService=f"{via}.eu-west-1.amazonaws.com")
    ]
    assert refused == []


def test_what_s3a_can_do_without_is_refused(variants):
    """For then a role has no right outside of its pipeline's checkpoints."""
    refused = {
        (job, *request)
        for job in (STREAM, PROBE)
        for request in known()[job]
        for action, arn, via in asked_for(*request)
        if not via and not allows(role_of(variants["governed"], role_name(job)), action, arn)
    }
    assert refused == {*REFUSED}


def test_a_permission_that_no_request_used_has_a_reason(variants):
    unused = {
        (job, action, arn)
        for job in JOBS
        for action, arn in grants(variants, job)
        if not any(fits(action, arn, call) for call in calls_of(job))
    }
    unexplained = [
        each for each in sorted(unused) if not any(explains(r, *each) for r in UNRECORDED)
    ]
    assert unexplained == []
    stale = [
        (job, *reason)
        for jobs, *reason in UNRECORDED
        for job in jobs
        if jobs is not JOBS and not any(explains(((job,), *reason), *each) for each in unused)
    ]
    assert stale == []


def explains(reason, job: str, action: str, arn: str) -> bool:
    jobs, of_action, of_arn, _ = reason
    return job in jobs and fnmatchcase(action, of_action) and fnmatchcase(arn, of_arn)


def grants(variants, job) -> Iterator[tuple[str, str]]:
    """Each action with each resource that a job's role may use it on."""
    for statement in own_statements(role_of(variants["governed"], role_name(job))):
        for action in listed(statement["Action"]):
            yield from ((action, rendered(on)) for on in listed(statement["Resource"]))


def fits(action: str, arn: str, call: Call) -> bool:
    return action == call[0] and fnmatchcase(call[1], arn)


# By what botocore calls it: what IAM calls it, where the names differ.
IAM_NAMES = {
    "s3:HeadObject": {"s3:GetObject", "s3:ListBucket"},
    "s3:ListObjectsV2": {"s3:ListBucket"},
    "s3:CopyObject": {"s3:GetObject", "s3:PutObject"},
    "s3:GetObject": {"s3:GetObject", "s3:ListBucket"},  # 404 instead of 403
}
OF_LAMBDA = ("ec2:*", "logs:*", "kms:*")  # what Lambda does for a function


def test_every_function_that_calls_aws_is_listed():
    calling = {file.parent.name for file in FUNCTIONS.rglob("*.py") if "boto3" in file.read_text()}
    assert calling == set(CALLS)


def test_every_deployed_function_is_one_of_these_or_calls_nothing(variants):
    deployed = {
        str(resource["Properties"]["Handler"]).partition(".")[0]
        for variant in variants.values()
        for template in variant.templates.values()
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Lambda::Function"
    }
    assert deployed == {file.parent.name for file in FUNCTIONS.glob("*/*.py")}


def test_every_call_of_a_function_has_been_recorded_or_has_a_reason():
    listed_calls = {(function, call) for function, calls in CALLS.items() for call in calls}
    recorded = {(function, call) for function, calls in called().items() for call in calls}
    assert recorded <= listed_calls
    assert listed_calls - recorded == {*UNRECORDED_CALLS}


@pytest.mark.parametrize("function", CALLS)
def test_the_roles_of_a_function_allow_what_it_calls_and_nothing_else(variants, function):
    """Each function's calls are checked by its own tests, against the same list."""
    allowed = {
        action
        for name in ("governed", "delivered", "existing", "puts", "trial")
        for role in roles_of_function(variants[name], function)
        for statement in own_statements(role)
        for action in listed(statement["Action"])
        if action in CALLS[function] or not any(fnmatchcase(action, of) for of in OF_LAMBDA)
    }
    called = {action for call in CALLS[function] for action in IAM_NAMES.get(call, {call})}
    assert allowed == called


def roles_of_function(deployed: Synthesized, function: str) -> Iterator[Template]:
    for template in deployed.templates.values():
        for resource in template["Resources"].values():
            properties = resource.get("Properties", {})
            if str(properties.get("Handler", "")).startswith(f"{function}."):
                yield template["Resources"][properties["Role"]["Fn::GetAtt"][0]]
