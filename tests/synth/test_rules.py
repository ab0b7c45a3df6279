"""Our own rules hold for every variant, and each fault that is put in on purpose is noticed."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator

import pytest

from tests.synth.deployments import VARIANTS, Template
from tests.synth.edits import Edit
from tests.synth.faults import FAULTS
from tests.synth.rules import RULES, WIDE_RULES, broken_rules

# Faults go into the first that fits.
SEEDED = ("created", "delivered", "web logs", "shards", "connectors")


@pytest.mark.parametrize("name", [*SEEDED, "existing", "puts"])
def test_no_rule_is_broken(variants, name):
    assert broken_rules(variants[name].templates) == []


def test_what_is_not_protected_breaks_that_rule_only(variants):
    broken = broken_rules(variants["small"].templates)
    assert broken and all(line.startswith("kept_when_deleted: ") for line in broken)


def test_runs_over_distinct_tables_break_that_rule_only(variants):
    broken = broken_rules(variants["governed"].templates)
    assert broken and all(line.startswith("one_run_at_a_time: ") for line in broken)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_role_fits_iam(variants, name):
    broken = broken_rules(variants[name].templates)
    assert [line for line in broken if line.startswith("roles_fit_iam")] == []


def test_there_is_something_for_every_rule(variants):
    deployed = (variants[name] for name in SEEDED)
    templates = [each for one in deployed for each in one.templates.values()]
    kinds = {r["Type"] for template in templates for r in template["Resources"].values()}
    assert {
        "AWS::Athena::NamedQuery",
        "AWS::Athena::WorkGroup",
        "AWS::CloudWatch::Alarm",
        "AWS::EC2::SecurityGroup",
        "AWS::ECS::Service",
        "AWS::ECS::TaskDefinition",
        "AWS::Glue::Connection",
        "AWS::Glue::Job",
        "AWS::Glue::Table",
        "AWS::IAM::Role",
        "AWS::KMS::Key",
        "AWS::Kinesis::Stream",
        "AWS::KinesisFirehose::DeliveryStream",
        "AWS::KafkaConnect::Connector",
        "AWS::KafkaConnect::CustomPlugin",
        "AWS::KafkaConnect::WorkerConfiguration",
        "AWS::Lambda::Function",
        "AWS::Lambda::Permission",
        "AWS::Logs::LogGroup",
        "AWS::MSK::Cluster",
        "AWS::MSK::Configuration",
        "AWS::MSK::Topic",
        "AWS::RDS::DBInstance",
        "AWS::RDS::DBParameterGroup",
        "AWS::S3::Bucket",
        "AWS::SNS::Topic",
        "AWS::SNS::TopicPolicy",
        "AWS::SQS::Queue",
        "AWS::Scheduler::Schedule",
        "AWS::SecretsManager::Secret",
    } <= kinds


def seeded(templates: dict[str, Template], kind: str, edit: Edit) -> Iterator[dict[str, Template]]:
    """The templates with the fault in one resource of the type, which the edit must fit."""
    copied = copy.deepcopy(templates)
    for template in reversed(copied.values()):
        for resource in template["Resources"].values():
            if resource["Type"] == kind:
                try:
                    edit(resource)
                except KeyError:
                    continue
                yield copied
                return


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_noticed(variants, name):
    rule, kind, edit = FAULTS[name]
    found = (seeded(variants[each].templates, kind, edit) for each in SEEDED)
    faulty = next(itertools.chain.from_iterable(found))
    assert {line.split(": ")[0] for line in broken_rules(faulty)} == {rule}


def test_every_rule_has_its_fault():
    rules = {rule.__name__ for rule in (*RULES, *WIDE_RULES)}
    assert {fault[0] for fault in FAULTS.values()} == rules
