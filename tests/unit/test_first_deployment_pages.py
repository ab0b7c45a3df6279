"""Pages on which a fix of the first deployment depends."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import boto3
import jmespath

from cdclake.deployed_jobs import SIGNED_BY_IAM
from tests.source_tree import PROJECT
from tests.unit.runbooks import PAGES
from tests.unit.typed_commands import unknown_aws_words

MAX_ARGUMENT_BYTES = 128 * 1024  # Linux's MAX_ARG_STRLEN


def test_first_deployments_keep_the_logs_of_what_failed() -> None:
    page = PAGES["first-deployment"]
    lines = re.findall(r"^npx cdk deploy .*environment=trial.*$", page, re.M)
    assert len(lines) >= 3
    assert all("--no-rollback" in line for line in lines)


def test_large_buckets_are_emptied_by_a_lifecycle_rule() -> None:
    page = PAGES["tearing-down"]
    rules = re.findall(r"^aws s3api put-bucket-lifecycle-configuration .*$", page, re.M)
    assert rules and all("NoncurrentVersionExpiration" in rule for rule in rules)


def test_small_buckets_are_emptied_by_arguments_that_linux_accepts() -> None:
    [line] = re.findall(r"^aws s3api delete-objects .*$", PAGES["tearing-down"], re.M)
    [listing] = re.findall(r"\$\((.*)\)", line)
    assert unknown_aws_words(listing) == []
    words = shlex.split(listing)
    assert "--no-paginate" in words  # otherwise the CLI lists all pages
    count, query = (words[words.index(option) + 1] for option in ("--max-keys", "--query"))
    version = {"Key": "k" * 200, "VersionId": "v" * 32}
    for listed in ("Versions", "DeleteMarkers"):
        entry = {**version, "IsLatest": True}
        found = jmespath.search(query, {listed: [entry] * int(count)})
        assert found == {"Objects": [version] * int(count)}
        assert len(json.dumps(found, indent=4)) < MAX_ARGUMENT_BYTES


def test_jobs_of_a_failed_zone_move_to_another_subnet() -> None:
    page = PAGES["keeper-gave-up"]
    assert re.search(r"^aws glue update-connection --name \S+-jobs ", page, re.M)


# Rights that are named otherwise than what they allow: ListObjectsV2, Invoke, and naming a role.
_NO_OPERATIONS = {
    *(("iam", "PassRole"), ("lambda", "InvokeFunction")),
    *(("s3", "ListBucket"), ("s3", "DeleteObjectVersion")),
}


def test_rights_of_a_person_are_operations_of_their_service() -> None:
    page = PAGES["first-deployment"].split("- **Rights of a person.**")[1].split("\n- **")[0]
    rights = re.findall(r"`([a-z0-9]+):([A-Za-z]+)`", page)
    assert len(rights) >= 12
    session = boto3.Session(region_name="eu-west-1")
    for service, action in rights:
        if (service, action) not in _NO_OPERATIONS:
            model = session.client(service).meta.service_model
            assert action in model.operation_names, f"{service}:{action}"


# Not for operating: `doctor`, `plan` and Athena. `status` also has the rights to query.
_OTHER_RIGHTS = {
    *("athena", "athena_engine", "athena_query", "deployed_forecast", "deployed_trace"),
    *("connector_probe", "fixed_names", "login_password", "parameter_check", "preflight", "probe"),
    "stack_lookup",
}
_MODULES_ELSEWHERE = (
    "cdclake/connectors/find_connector.py",
    "cdclake/control_reader.py",
    "glue_jobs/control/store.py",
)
_RIGHTS = {  # where they are named otherwise than the operation, or S3 needs others as well
    "lambda:Invoke": {"lambda:InvokeFunction"},
    "s3:HeadObject": {"s3:GetObject", "s3:ListBucket", "kms:Decrypt"},
    "s3:GetObject": {"s3:GetObject", "s3:ListBucket", "kms:Decrypt"},  # 404 instead of 403
    "s3:DeleteObject": {"s3:DeleteObject", "s3:DeleteObjectVersion"},
    "s3:DeleteObjects": {"s3:DeleteObject"},  # of reports, on the local lake only
    "s3:ListObjectsV2": {"s3:ListBucket"},
    "s3:PutObject": {"s3:PutObject", "kms:GenerateDataKey"},
}


def test_rights_to_operate_are_the_calls_of_the_commands() -> None:
    page = PAGES["first-deployment"].split("To operate:")[1].split("To query:")[0]
    modules = [
        *(p for p in (PROJECT / "cdclake/deployed").glob("*.py") if p.stem not in _OTHER_RIGHTS),
        *(PROJECT / name for name in _MODULES_ELSEWHERE),
    ]
    calls = set[str]().union(*map(_calls, modules))
    needed = set[str]().union(*(_RIGHTS.get(call, {call}) for call in calls))
    assert {*re.findall(r"`([a-z0-9]+:[A-Za-z]+)`", page)} == needed


def _calls(module: Path) -> set[str]:
    """Return the operations of AWS that a module's text calls."""
    text = module.read_text()
    services = re.findall(r'boto3\.client\("([\w-]+)"', text) + ["s3"] * ("_s3" in text)
    services += ["glue"] * ("_glue" in text) + ["kafkaconnect"] * ("kafkaconnect." in text)
    names = re.findall(r"\.(\w+)\(", text) + re.findall(r'get_paginator\("(\w+)"\)', text)
    session = boto3.Session(region_name="eu-west-1")
    operations = {each: session.client(each).meta.method_to_api_mapping for each in services}
    return {
        f"{service}:{methods[name]}"
        for service, methods in operations.items()
        for name in names
        if name in methods
    }


def test_settings_of_kafkas_tools_are_those_of_the_jobs() -> None:
    page = PAGES["first-deployment"].split("`client-iam.properties`")[1]
    lines = page.split("```")[1].strip().splitlines()
    assert dict(line.split("=", 1) for line in lines) == SIGNED_BY_IAM


def test_spark_submit_passes_each_argument_of_the_job() -> None:
    [line] = re.findall(r"^spark-submit .*$", PAGES["first-deployment"], re.M)
    words = shlex.split(line)
    [script] = [word for word in words if word.endswith(".py")]
    assert (PROJECT / script).is_file()
    section = (
        (PROJECT / "docs/jobs.md").read_text().split("## maintain_tables\n")[1].split("\n## ")[0]
    )
    deployed = section.split("| set per run")[0]
    needed = re.findall(r"^\| `(--[a-z_]+)`", deployed, re.M)
    assert needed and set(needed) <= set(words[words.index(script) :])
