"""cdk-nag sees every stack, finds nothing that is not accepted with a reason, and would find it."""

from __future__ import annotations

from pathlib import Path

import pytest
from aws_cdk import App, Stack, aws_s3

from cdclake.stacks.pipeline_app import check_security
from scripts.nist_report import findings
from tests.synth.deployments import FLAGS, PROJECT, VARIANTS

ALWAYS = {"GL1", "GL3", "IAM5", "SMG4", "SQS3"}
OF_WEB_LOGS = {"ECS2", "IAM5"}
ACCEPTED = {
    "created": ALWAYS | {"RDS11"},
    "existing": ALWAYS,
    "connectors": ALWAYS,
    "small": ALWAYS | {"RDS3", "RDS10", "RDS11"},
    "delivered": ALWAYS | {"RDS11", "KDF1"},
    "web logs": OF_WEB_LOGS,
    "shards": OF_WEB_LOGS | {"KDF1", "KDS3"},
    "puts": {"IAM5", "KDF1", "KDS3"},
    "trial": ALWAYS | {"RDS3", "RDS10", "RDS11"},
    "governed": ALWAYS | {"RDS6"},
}


def rules(report, key: str) -> list[dict[str, str]]:
    [plugin] = [p for p in report["pluginReports"] if p["pluginName"] == "AwsSolutions"]
    return list(plugin[key])


@pytest.mark.parametrize("name", VARIANTS)
def test_nothing_is_found_but_what_is_accepted(variants, name):
    report = variants[name].report()
    # CDK's own validation would have an entry, too, if it had found anything.
    assert [plugin["pluginName"] for plugin in report["pluginReports"]] == ["AwsSolutions"]
    assert rules(report, "violations") == []
    accepted = rules(report, "suppressedViolations")
    assert {entry["ruleName"].split("[")[0] for entry in accepted} == {
        f"AwsSolutions-{rule}" for rule in ACCEPTED[name]
    }
    assert all(len(entry["reason"]) > 20 for entry in accepted)


def test_the_gate_stops_at_a_bad_bucket(tmp_path: Path):
    app = App(context=FLAGS, outdir=str(tmp_path), analytics_reporting=False)
    aws_s3.CfnBucket(Stack(app, "Seeded"), "Open")
    check_security(app)
    with pytest.raises(RuntimeError, match="AwsSolutions-S10"):
        app.synth()


@pytest.mark.synth
def test_the_nist_report_names_rules_and_resources():
    found = findings(PROJECT / "pipelines" / "shop.yaml", "prod")
    assert "shop-prod-source/Login/Secret" in found["NIST.800.53.R5-SecretsManagerRotationEnabled"]
    assert found["NIST.800.53.R5-S3DefaultEncryptionKMS"] == ["shop-prod-lake/AccessLog/Bucket"]
