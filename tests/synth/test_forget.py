"""The job that erases rows: what its role alone may do, and who gets the salt."""

from __future__ import annotations

from typing import Any

from tests.synth.deployments import Synthesized
from tests.synth.permissions import own_statements, rendered, role_of
from tests.synth.rules.reading import listed

JOB = "shop-forget_rows"
SALT = "secretsmanager:GetSecretValue"


def allowed(role: Any, action: str) -> set[str]:
    return {
        rendered(on)
        for statement in own_statements(role)
        if action in listed(statement["Action"])
        for on in listed(statement["Resource"])
    }


def jobs(deployed: Synthesized) -> dict[str, dict[str, str]]:
    """Arguments of the jobs, by name."""
    return {
        job["Properties"]["Name"]: job["Properties"]["DefaultArguments"]
        for job in deployed.resources("AWS::Glue::Job")
    }


def test_it_alone_deletes_versions_and_only_of_tables_and_keys(created: Synthesized) -> None:
    deleting = {
        name
        for template in created.templates.values()
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::Role" and "ObjectVersion" in str(resource)
    }
    [name] = deleting
    assert name.startswith("ForgetRowsRole")
    role = role_of(created, "ForgetRows")
    assert allowed(role, "s3:DeleteObjectVersion") == {
        "arn:aws:s3:::warehouse/cdc_iceberg.db/*",
        "arn:aws:s3:::state/control/forgets/*",
    }


def test_of_failed_records_it_rewrites_those_of_firehose_only(
    variants: dict[str, Synthesized],
) -> None:
    role = role_of(variants["delivered"], "ForgetRows")
    failed = {
        f"arn:aws:s3:::state/firehose/{folder}/*"
        for folder in ("iceberg-failed", "processing-failed", "redriven")
    }
    assert allowed(role, "s3:DeleteObject") == failed
    assert failed < allowed(role, "s3:DeleteObjectVersion")
    assert failed < allowed(role, "s3:PutObject")


def test_it_writes_no_table_and_few_control_objects(created: Synthesized) -> None:
    role = role_of(created, "ForgetRows")
    control = "arn:aws:s3:::state/control/"
    assert {on.removeprefix(control) for on in allowed(role, "s3:PutObject")} == {
        "erasures/*",
        "repairs/*.forget.json",
        "reports/*",
        "stream.json",
    }
    assert not allowed(role, "s3:DeleteObject") and not allowed(role, "glue:UpdateTable")
    assert not allowed(role, "kafka-cluster:WriteData")
    topics = {on.rpartition("/")[2] for on in allowed(role, "kafka-cluster:ReadData")}
    assert topics == {"shop.cdclake.heartbeat"}


def test_it_starts_only_the_jobs_that_erase_and_those_that_write_copies(
    variants: dict[str, Synthesized],
) -> None:
    def started(variant: str) -> set[str]:
        role = role_of(variants[variant], "ForgetRows")
        return {on.rpartition("/")[2] for on in allowed(role, "glue:StartJobRun")}

    assert started("governed") == {"shop-poll_tables", "shop-publish_hudi"}
    assert started("created") == set()
    assert started("delivered") == {"shop-apply_changes"}


def test_without_masks_only_what_erases_gets_the_salt(
    created: Synthesized, variants: dict[str, Synthesized]
) -> None:
    salted = {name for name, given in jobs(created).items() if "--mask_salt" in given}
    assert salted == {"shop-stream_changes", JOB}
    secrets = {
        name: len(allowed(role_of(created, name), SALT))
        for name in ("StreamChanges", "VerifyTables", "ForgetRows")
    }
    assert secrets == {"StreamChanges": 1, "VerifyTables": 1, "ForgetRows": 2}
    delivered = jobs(variants["delivered"])
    assert "--mask_salt" in delivered["shop-apply_changes"]
    assert len(allowed(role_of(variants["delivered"], "ApplyChanges"), SALT)) == 1
    [argument] = {
        given["--mask_salt"] for given in jobs(created).values() if "--mask_salt" in given
    }
    assert argument == "shop/mask"


def test_keys_that_no_job_has_read_expire_with_their_versions(created: Synthesized) -> None:
    [rule] = [
        rule
        for bucket in created.resources("AWS::S3::Bucket")
        for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"]
        if rule.get("Prefix") == "control/forgets/"
    ]
    assert rule["ExpirationInDays"] == 1
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}


def test_reports_which_may_show_rows_expire_with_their_versions(created: Synthesized) -> None:
    [rule] = [
        rule
        for bucket in created.resources("AWS::S3::Bucket")
        for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"]
        if rule.get("Prefix") == "control/reports/"
    ]
    assert rule["ExpirationInDays"] == 7
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}


def test_where_no_rows_can_be_erased_there_is_no_job(variants: dict[str, Synthesized]) -> None:
    having = {name for name, each in variants.items() if JOB in jobs(each)}
    assert {*variants} - having == {"connectors", "puts", "shards", "web logs"}
