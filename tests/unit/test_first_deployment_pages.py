"""Pages on which a fix of the first deployment depends."""

from __future__ import annotations

import re
import shlex

import boto3

from cdclake.deployed_jobs import SIGNED_BY_IAM
from tests.source_tree import PROJECT
from tests.unit.runbooks import PAGES


def test_first_deployments_keep_the_logs_of_what_failed() -> None:
    page = PAGES["first-deployment"]
    lines = re.findall(r"^npx cdk deploy .*environment=trial.*$", page, re.M)
    assert len(lines) >= 3
    assert all("--no-rollback" in line for line in lines)


def test_large_buckets_are_emptied_by_a_lifecycle_rule() -> None:
    page = PAGES["tearing-down"]
    rules = re.findall(r"^aws s3api put-bucket-lifecycle-configuration .*$", page, re.M)
    assert rules and all("NoncurrentVersionExpiration" in rule for rule in rules)


def test_jobs_of_a_failed_zone_move_to_another_subnet() -> None:
    page = PAGES["keeper-gave-up"]
    assert re.search(r"^aws glue update-connection --name \S+-jobs ", page, re.M)


# Rights that are named otherwise than what they allow: ListObjectsV2, and naming a role.
_NO_OPERATIONS = {("iam", "PassRole"), ("s3", "ListBucket")}


def test_rights_of_a_person_are_operations_of_their_service() -> None:
    page = PAGES["first-deployment"].split("- **Rights of a person.**")[1].split("\n- **")[0]
    rights = re.findall(r"`([a-z0-9]+):([A-Za-z]+)`", page)
    assert len(rights) >= 12
    session = boto3.Session(region_name="eu-west-1")
    for service, action in rights:
        if (service, action) not in _NO_OPERATIONS:
            model = session.client(service).meta.service_model
            assert action in model.operation_names, f"{service}:{action}"


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
