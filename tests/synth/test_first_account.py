"""Fixes of what would fail on a first account and that no rule over the templates sees."""

from __future__ import annotations

from cdclake.deployed.source_sql import MAX_FILE_MB
from cdclake.deployed_jobs import AT_KAFKA
from tests.mutations.broken_first_account import FINDINGS, FIRST_ACCOUNT
from tests.synth.deployments import PIPELINE, VARIANTS
from tests.synth.faults import FAULTS

DB = "AWS::RDS::DBInstance"
UNPROTECTED = f"{PIPELINE}aws: {{protect: false}}\n"


def test_a_function_runs_sql_in_the_private_database(created):
    functions = {
        each["Properties"].get("FunctionName"): each["Properties"]
        for each in created.resources("AWS::Lambda::Function")
    }
    memory_mb = functions["shop-source-sql"]["MemorySize"]
    assert memory_mb >= 9 * MAX_FILE_MB + 200  # with Python and its packages
    assert memory_mb <= 3008  # what Lambda allows a new account


def test_each_job_with_a_kafka_client_is_a_streaming_job(deploy):
    streaming = {
        each["Properties"]["Name"].removeprefix("shop-")
        for each in deploy(VARIANTS["governed"]).resources("AWS::Glue::Job")  # with a bulk load
        if each["Properties"]["Command"]["Name"] == "gluestreaming"
    }
    assert streaming >= set(AT_KAFKA)


def test_deleted_versions_of_checkpoints_stay_a_day(created):
    rules = [
        rule
        for bucket in created.resources("AWS::S3::Bucket")
        for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"]
        if rule.get("Prefix") == "checkpoints/"
    ]
    assert [rule["NoncurrentVersionExpiration"]["NoncurrentDays"] for rule in rules] == [1]


def test_backups_end_with_an_unprotected_database(created, deploy):
    assert deploy(UNPROTECTED).only(DB)["DeleteAutomatedBackups"] is True
    assert created.only(DB)["DeleteAutomatedBackups"] is False


def test_the_database_restarts_in_a_declared_window(created):
    assert created.only(DB)["PreferredMaintenanceWindow"] == "sun:02:00-sun:03:00"


def test_a_new_login_version_prepares_the_source_again(created, deploy):
    later = deploy(f"{PIPELINE}aws: {{connect: {{login_version: 2}}}}\n")
    prepared = [each.only("Custom::CdclakeSource") for each in (created, later)]
    assert prepared[0] != prepared[1]


def test_each_finding_has_one_fault_that_undoes_its_fix():
    assert list(FINDINGS) == [f"AWS{number}" for number in range(1, 28)]
    assert all(bool(each.fault) != bool(each.mutation) for each in FINDINGS.values())
    faults = [each.fault for each in FINDINGS.values() if each.fault]
    mutations = [each.mutation for each in FINDINGS.values() if each.mutation]
    assert set(faults) <= FAULTS.keys()
    assert sorted(mutations) == sorted(each.name for each in FIRST_ACCOUNT)
    assert len({*faults, *mutations}) == len(FINDINGS)
